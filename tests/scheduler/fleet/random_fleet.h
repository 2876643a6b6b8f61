// Random models of a fleet, from a seed.
#pragma once

#include "runtime/base/rng.h"
#include "scheduler/fleet/sizing.h"

namespace tandem::scheduler {

inline FleetModel random_model(Rng& rng) {
  FleetModel model{.rollouts_per_s = {},
                   .pause_fraction = 0.5 * rng.unit(),
                   .generated_per_trained = 1 + rng.unit(),
                   .step_seconds = 0.1 + 30 * rng.unit(),
                   .step_tokens = 1000 + 1e6 * rng.unit(),
                   .completions_per_step = static_cast<double>(1 + rng.below(4096)),
                   .overlaps = rng.below(4) != 0};
  const std::uint64_t rollouts = 1 + rng.below(12);
  for (std::uint64_t i = 0; i < rollouts; ++i)
    model.rollouts_per_s.push_back(100 + 20000 * rng.unit());
  return model;
}

}  // namespace tandem::scheduler
