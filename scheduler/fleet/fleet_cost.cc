#include "scheduler/fleet/fleet_cost.h"

#include "runtime/base/check.h"

namespace tandem::scheduler {

FleetCost cost_of(const FleetPrice& price, const SteadyState& fleet, std::int64_t ranks) {
  CHECK(ranks > 0 && fleet.cycle_seconds > 0);
  const auto cost_within = [&](double seconds) {
    return cost_of(
        DeviceSeconds{
            .rollout = seconds * price.devices_per_rollout * static_cast<double>(fleet.rollouts),
            .learner = seconds * price.devices_per_rank * static_cast<double>(ranks)},
        price.prices);
  };
  return {.per_hour = cost_within(kSecondsPerHour),
          .per_day = cost_within(kSecondsPerDay),
          .per_step = cost_within(fleet.cycle_seconds),
          .per_thousand_completions =
              fleet.completions_per_s > 0 ? cost_within(1000 / fleet.completions_per_s) : 0};
}

}  // namespace tandem::scheduler
