// The learning rate of a step: a linear warm-up, then constant, linear or cosine. Linear and cosine
// descend to min_lr_ratio * lr at `steps_total` and stay there. Step s of the warm-up, from 0, has
// (s + 1) / lr_warmup_steps of lr, so that no step has rate 0.
#pragma once

#include <cstdint>

#include "actors/learner/learner_config.h"

namespace tandem::learner {

double learning_rate(const OptimizerConfig& config, std::int64_t step, std::int64_t steps_total);

}  // namespace tandem::learner
