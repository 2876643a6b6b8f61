// Rules over several keys: those that a job must satisfy, those by which one choice settles other
// keys, and those that only deserve a warning. Ranges of single keys are in the job table. Pure:
// the files that a job names are not looked at.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/job/job_spec.h"
#include "actors/job/violation.h"

namespace tandem::job {

// The rules that `job` breaks, in a fixed order. Where rules about one value build on each other,
// only the first broken one is there. A settled job is expected: some rules would otherwise refuse
// values that settle() replaces.
std::vector<Violation> broken_rules(const JobSpec& job);

// Where the user gave this key a value: 0, nowhere; 1, in the file; N + 1, in the Nth --set.
using Given = std::function<std::size_t(std::string_view key)>;

// Changes the keys that another choice decides, instead of refusing the job: fixed_lag turns
// partial_rollout off; dr_grpo and gspo have a loss aggregation of their own, gspo and cispo have
// no dual clip, and a clip range of their own where none is given; random weights have a
// higher learning rate where none is given; of steps and epochs the one that was given later
// counts, and the steps where one file has both. Returns a sentence per change of a value that the
// user gave.
std::vector<std::string> settle(JobSpec& job, const Given& given);

// Settings that are allowed and seldom meant: one sentence each, for stderr.
std::vector<std::string> job_warnings(const JobSpec& job);

}  // namespace tandem::job
