// What a job reads, judged before anything starts: the model's directory and every data file. So
// what is wrong with them is said at once and with its place, and no run directory is made.
// Not here: whether the files exist (load_job), and whether the job fits the cluster.
#pragma once

#include <string>
#include <vector>

#include "actors/main/job/load_job.h"
#include "actors/main/memory_plan.h"
#include "runtime/base/result.h"

namespace tandem::cli {

struct CheckedInputs {
  std::vector<std::string> warnings;  // a sentence each
  PlannedModel model;                 // whose memory can be planned
};

// Reads the data whole, and of the weights the header only. kFailed for what cannot be read,
// kInvalid for what cannot be used: a line that is not a record, text that the model's tokenizer
// cannot encode (both with "file:line"), prompts of which none fits data.max_prompt_length, lengths
// beyond the model's positions (with the key's place).
Result<CheckedInputs> check_inputs(const LoadedJob& job);

}  // namespace tandem::cli
