// The learning rate of a step: a linear warm-up, then constant, linear or cosine down to
// min_lr_ratio * lr at `steps_total` and from then on. Step s of the warm-up has (s + 1) / warmup.
#pragma once

#include <cstdint>

#include "actors/learner/learner_config.h"

namespace tandem::actors {

double learning_rate(const OptimizerConfig& config, std::int64_t step, std::int64_t steps_total);

}  // namespace tandem::actors
