// What a job must satisfy across keys, and what deserves a warning. Ranges of single keys are in
// the job table. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/main/job/job_spec.h"

namespace tandem::cli {

struct Violation {
  std::string_view key;  // the one to change; its place is shown
  std::string message;
  std::string help;
};

// The first rule that `job` breaks.
std::optional<Violation> broken_rule(const JobSpec& job);

// What a rule settles instead of refusing: fixed_lag turns partial_rollout off. Returns a sentence
// per change.
std::vector<std::string> settle(JobSpec& job);

// Allowed, but seldom meant: one sentence each.
std::vector<std::string> job_warnings(const JobSpec& job);

}  // namespace tandem::cli
