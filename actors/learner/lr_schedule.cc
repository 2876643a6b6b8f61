#include "actors/learner/lr_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tandem::learner {

std::int64_t warmup_steps(const OptimizerConfig& config, std::int64_t steps_total) {
  if (!config.lr_warmup_steps_ratio) return config.lr_warmup_steps;
  return static_cast<std::int64_t>(*config.lr_warmup_steps_ratio *
                                   static_cast<double>(steps_total));
}

double learning_rate(const OptimizerConfig& config, std::int64_t step, std::int64_t steps_total) {
  const std::int64_t warmup = warmup_steps(config, steps_total);
  if (step < warmup) return config.lr * static_cast<double>(step + 1) / static_cast<double>(warmup);
  // The steps from the first one after the warm-up to the last one, steps_total - 1. There is at
  // least 1: a warm-up that is longer than the whole training leaves no steps to descend.
  const std::int64_t span = std::max<std::int64_t>(steps_total - 1 - warmup, 1);
  const double progress =
      std::min(1.0, static_cast<double>(step - warmup) / static_cast<double>(span));
  double factor = 1.0;  // how far lr is on the way from min_lr_ratio * lr up to lr
  switch (config.lr_scheduler_type) {
    case LrSchedule::kConstant:
      return config.lr;
    case LrSchedule::kLinear:
      factor = 1.0 - progress;
      break;
    case LrSchedule::kCosine:
      factor = 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
      break;
  }
  return config.lr * (config.min_lr_ratio + (1.0 - config.min_lr_ratio) * factor);
}

}  // namespace tandem::learner
