// How a job is submitted to a controller by HTTP: POST of its text, with a long patience.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

#include "actors/cli/api_client.h"
#include "runtime/base/clock.h"

namespace tandem::cli {

// The controller reads all data of the job before it answers: 4 GiB, several times.
inline constexpr Duration kSubmitTimeout = std::chrono::minutes(10);

// The path of the request, with the run that the job is to continue.
inline std::string submit_path(const std::optional<std::filesystem::path>& resume) {
  return resume ? "/jobs?resume=" + url_escape(resume->string()) : "/jobs";
}

}  // namespace tandem::cli
