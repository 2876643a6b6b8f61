// One trained step as JSON, for a person with a debugger: each group of the batch and each of its
// completions with tokens, text, log-probabilities, advantages and losses. Pure.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "actors/learner/token_watch.h"
#include "actors/messages/learner.h"
#include "actors/runs/batch_log.h"
#include "runtime/base/result.h"

namespace tandem::replay {

struct DumpedStep {
  const runs::RecordedBatch& batch;
  const messages::StepReport& report;                     // of the step as it was trained again
  const std::vector<learner::WatchedCompletion>& tokens;  // of all ranks
  std::uint64_t checksum = 0;                             // of the weights that the step ended in
};

// A list of numbers is in the order of `tokens` of its completion. `updates` of a completion has an
// entry for each optimizer step in which it was computed, with the figures at the weights before
// that step. A number that is not finite is null. kInvalid: a payload cannot be read.
Result<nlohmann::json> step_json(const DumpedStep& step);

}  // namespace tandem::replay
