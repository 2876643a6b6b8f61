#include "scheduler/fleet/fleet_cost.h"

#include "runtime/base/check.h"

namespace tandem::scheduler {

FleetCost cost_of(const DevicePrices& prices, const SteadyState& fleet, std::int64_t ranks) {
  CHECK(prices.rollout >= 0 && prices.learner >= 0 && ranks > 0 && fleet.cycle_seconds > 0);
  const double hour = prices.rollout * static_cast<double>(fleet.rollouts) +
                      prices.learner * static_cast<double>(ranks);
  const double completions_per_hour = fleet.completions_per_s * kSecondsPerHour;
  return {.per_hour = hour,
          .per_day = hour * kSecondsPerDay / kSecondsPerHour,
          .per_step = hour * fleet.cycle_seconds / kSecondsPerHour,
          .per_thousand_completions =
              completions_per_hour > 0 ? hour / completions_per_hour * 1000 : 0};
}

}  // namespace tandem::scheduler
