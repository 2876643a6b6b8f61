// The cost of a fleet: a price per device and hour for each pool. A rollout takes one device, and so
// does a rank of the learner. Pure; plain numbers in the currency of the prices.
#pragma once

#include <cstdint>
#include <string>

#include "scheduler/fleet/sizing.h"

namespace tandem::scheduler {

struct DevicePrices {
  double rollout = 0, learner = 0;  // of one device for one hour; at least 0
  std::string currency;             // as the user writes it; may be empty
};

struct FleetCost {
  double per_hour = 0, per_day = 0;
  double per_step = 0;
  double per_thousand_completions = 0;  // trained ones; 0 where the model has no completions
};
FleetCost cost_of(const DevicePrices& prices, const SteadyState& fleet, std::int64_t ranks);

}  // namespace tandem::scheduler
