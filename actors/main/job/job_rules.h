// What a job must satisfy across keys, and what deserves a warning. Ranges of single keys are in
// the job table. Pure.
#pragma once

#include <functional>
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

// Whether the user gave this key a value.
using Given = std::function<bool(std::string_view key)>;

// What a choice settles for other keys, instead of refusing them: fixed_lag turns partial_rollout
// off; dr_grpo and gspo have a loss aggregation of their own, gspo and cispo no dual clip, and gspo
// a clip range of its own where none is given. Returns a sentence per given value that it changes.
std::vector<std::string> settle(JobSpec& job, const Given& given);

// Allowed, but seldom meant: one sentence each.
std::vector<std::string> job_warnings(const JobSpec& job);

}  // namespace tandem::cli
