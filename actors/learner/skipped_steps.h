// Counts optimizer steps that are skipped because their gradient is not finite. Such a step changes
// no weight and no moment and does not count in AdamW's t. Its batch still counts as trained: the
// place in the lr schedule moves on, and the version that the step makes has the weights of the one
// before. Steps of a warm start count like those of RL.
//
//   SK-1  Every rank has the same norm and so counts the same: all skip a step, or none does, and
//         all end at the same one.
//
// Logs each skipped step as a warning, on each rank.
#pragma once

#include <cstdint>

#include "runtime/base/result.h"
#include "runtime/wire/fields.h"

namespace tandem::learner {

struct SkippedSteps {
  std::uint64_t total = 0;   // since the run began
  std::uint64_t in_row = 0;  // up to the newest step; 0: that one was taken
};
TANDEM_WIRE(SkippedSteps, total, in_row)

// The facts about a step's gradient that a rank knows, for the log and the error.
struct GradientFacts {
  const char* kind;         // "step", "warm-start step"
  std::int64_t number = 0;  // from 1, as in metrics.jsonl
  int rank = 0;
  double norm = 0;  // the whole gradient's norm, before clipping
  double loss = 0;  // the sum over the rank's own share of the batch
};

// Counts a step. The error is kInvalid and means that more than `in_row_max` steps in a row were
// skipped; a restart would meet the same batch.
Result<void> count_step(const GradientFacts& gradient, std::int64_t in_row_max,
                        SkippedSteps& skipped);

}  // namespace tandem::learner
