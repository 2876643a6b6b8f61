#include "actors/learner/skipped_steps.h"

#include <cmath>
#include <string>

#include "runtime/base/log.h"

namespace tandem::learner {

Result<void> count_step(const GradientFacts& gradient, std::int64_t in_row_max,
                        SkippedSteps& skipped) {
  if (std::isfinite(gradient.norm)) {
    skipped.in_row = 0;
    return {};
  }
  ++skipped.total;
  ++skipped.in_row;
  log::warn(
      "event=step_skipped kind=\"{}\" number={} rank={} grad_norm={} rank_loss={} in_row={} "
      "total={}",
      gradient.kind, gradient.number, gradient.rank, gradient.norm, gradient.loss, skipped.in_row,
      skipped.total);
  // One bad batch is survivable. Many in a row mean that the weights no longer train.
  if (skipped.in_row <= static_cast<std::uint64_t>(in_row_max)) return {};
  return Error{
      ErrorCode::kInvalid,
      std::string(gradient.kind) + " " + std::to_string(gradient.number) +
          " has a gradient that is not finite (norm " + std::to_string(gradient.norm) +
          "): steps skipped in a row: " + std::to_string(skipped.in_row) +
          ", and learner.max_nonfinite_steps is " + std::to_string(in_row_max) +
          ". Lower learner.optimizer.lr or learner.optimizer.grad_clip, or set model.dtype "
          "to float32, and resume the run from its last checkpoint with --resume and "
          "--set; lines of event=step_skipped in the learner's log say which rank's loss "
          "was not finite"};
}

}  // namespace tandem::learner
