#include "scheduler/fleet/device_split.h"

#include <cmath>

#include "runtime/base/check.h"

namespace tandem::scheduler {

double scaled_step_seconds(const StepScaling& step) {
  CHECK(step.measured_ranks > 0 && step.ranks > 0 && step.efficiency >= 0.5 &&
        step.efficiency <= 1);
  const double ratio = static_cast<double>(step.ranks) / static_cast<double>(step.measured_ranks);
  return step.seconds / std::pow(ratio, std::log2(2 * step.efficiency));
}

Splits splits_of(const SplitRequest& request) {
  CHECK(request.devices >= 2 && request.devices <= kDevicesMost);
  Splits splits;
  FleetModel model = request.model;
  // All rollouts are mean ones here: which of them would be given up is not known.
  const Rates mean = rates_of({.rollouts_per_s = request.model.rollouts_per_s,
                               .pause_fraction = 0,
                               .generated_per_trained = 1,
                               .step_seconds = 1,
                               .step_tokens = 1});
  model.rollouts_per_s = {mean.instance_per_s * request.headroom};
  for (std::int64_t rollouts = 1; rollouts < request.devices; ++rollouts) {
    const std::int64_t ranks = request.devices - rollouts;
    model.step_seconds = scaled_step_seconds({.seconds = request.model.step_seconds,
                                              .measured_ranks = request.ranks,
                                              .ranks = ranks,
                                              .efficiency = request.learner_efficiency});
    const SteadyState fleet = steady_state(model, rollouts);
    splits.all.push_back({.ranks = ranks,
                          .step_seconds = model.step_seconds,
                          .fleet = fleet,
                          .steps_per_hour = kSecondsPerHour / fleet.cycle_seconds});
    if (splits.all.back().steps_per_hour > splits.all[splits.best].steps_per_hour)
      splits.best = splits.all.size() - 1;
  }
  return splits;
}

}  // namespace tandem::scheduler
