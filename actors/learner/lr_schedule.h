// The learning rate of a step: a linear warm-up, then constant, linear or cosine. Linear and cosine
// descend to min_lr_ratio * lr at `steps_total` and stay there. Step s of the warm-up's w steps,
// from 0, has (s + 1) / w of lr, so that no step has rate 0. Where lr_warmup_steps_ratio is given w
// is this share of steps_total, rounded down as in verl, else lr_warmup_steps.
#pragma once

#include <cstdint>

#include "actors/learner/learner_config.h"

namespace tandem::learner {

std::int64_t warmup_steps(const OptimizerConfig& config, std::int64_t steps_total);
double learning_rate(const OptimizerConfig& config, std::int64_t step, std::int64_t steps_total);

}  // namespace tandem::learner
