// Inputs that belong to other systems, recognised so that the error can say how to convert them: a
// Hub id where a model directory belongs, and other formats where a data file belongs. Reads at
// most the head of a file, and downloads or converts nothing.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "runtime/base/result.h"

namespace tandem::job {

// An error with the way to a directory, where `path`, relative to `base`, has the form of a Hub id
// ("Qwen/Qwen3-0.6B") and neither it nor its parent folder exists. `where` is the place of the key
// in the job file.
std::optional<Error> hub_id_error(const std::filesystem::path& path,
                                  const std::filesystem::path& base, const std::string& where);

// Why `file` cannot be JSON lines: it is parquet, safetensors, an archive or another binary file,
// one JSON array, or CSV by its name; with a command that converts it, where one is known. nullopt
// where its head may be JSON lines, and where it cannot be read, which the caller reports.
std::optional<Error> foreign_data_error(const std::filesystem::path& file);

}  // namespace tandem::job
