// The sections of a job that say how completions are scored: `reward` and `pools.reward`. Parts of
// JobSpec (job_spec.h), which explains how fields and keys correspond; docs/job-file.md describes
// each key.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/job/job_values.h"

namespace tandem::job {

// Limits on the program of reward.type command; null: no limit. open_files and file_size_megabytes
// are kept by the kernel, the other two are watched by the reward actor.
struct RewardLimitsSpec {
  std::optional<std::int64_t> open_files = 1024;
  std::optional<std::int64_t> file_size_megabytes = 4096;
  std::optional<double> cpu_seconds_per_line = 600;
  std::optional<std::int64_t> memory_megabytes = 16384;
};

// How a completion is scored. An attempt that takes longer than timeout_s seconds has failed; after
// `retries` more attempts the group is discarded.
struct RewardSpec {
  std::int64_t replicas = 1;
  RewardType type = RewardType::kExact;
  std::optional<std::string> pattern;               // set exactly when type is regex
  std::optional<std::vector<std::string>> command;  // argv; set exactly when type is command
  double timeout_s = 10;
  std::int64_t retries = 2;
  std::optional<double> on_failure;  // the reward of a failed completion; none: "discard"
  // Environment variables of the program, beside those that CE-1 passes on.
  std::map<std::string, std::string> env;
  RewardLimitsSpec limits;
};

// Resources of each reward actor.
struct RewardPoolSpec {
  double cpus_per_actor = 0.1;
};

}  // namespace tandem::job
