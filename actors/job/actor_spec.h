// The section `actors` of a job: programs of the user's, each of which plays a role that has the
// name of its key. Part of JobSpec (job_spec.h), which explains how fields and keys correspond;
// docs/job-file.md describes each key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/job/job_values.h"

namespace tandem::job {

// A map of the user's own, kept as the text of a JSON object: {"start": 3}.
struct JsonObject {
  std::string text = "{}";
  bool operator==(const JsonObject&) const = default;
};
inline constexpr std::size_t kJsonObjectBytesMax = 64 << 10;

inline constexpr std::size_t kActorRolesMax = 64;  // of one job

// The actors of one role.
struct ActorSpec {
  std::optional<std::vector<std::string>> command;  // argv; required
  std::int64_t replicas = 1;
  double cpus_per_actor = 0.5;
  double gpus_per_actor = 0;
  std::optional<std::int64_t> memory_megabytes;  // null: none is reserved
  JsonObject args;                               // given to the program
  std::map<std::string, std::string> env;        // beside the node's own environment
  SandboxMode sandbox = SandboxMode::kOff;
  std::vector<std::filesystem::path> readable;  // of a sandboxed program, beside its own files
};
using ActorsSpec = std::map<std::string, ActorSpec>;  // by role

}  // namespace tandem::job
