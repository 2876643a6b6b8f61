// The cost of a fleet in its steady state (sizing.h), before it runs; cost.h counts that of a run.
// Pure.
#pragma once

#include <cstdint>

#include "scheduler/fleet/cost.h"
#include "scheduler/fleet/sizing.h"

namespace tandem::scheduler {

// The prices and the devices of a rollout and of a rank of the learner, as cost.h counts them.
struct FleetPrice {
  Pricing prices;
  double devices_per_rollout = 1, devices_per_rank = 1;
};

struct FleetCost {
  double per_hour = 0, per_day = 0;
  double per_step = 0;
  double per_thousand_completions = 0;  // trained ones; 0 where the model has no completions
};
FleetCost cost_of(const FleetPrice& price, const SteadyState& fleet, std::int64_t ranks);

}  // namespace tandem::scheduler
