// The committed steps of a forecast in figures, and those of its steady part, which neither the
// start-up nor the last steps are in. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace tandem::forecast {

// A committed step. Times are from the moment when the first version was published; sums are of all
// steps so far.
struct ForecastStep {
  double at_s = 0;
  std::int64_t queue_depth = 0, oldest_age_steps = 0;
  double trainer_idle_fraction = 0;  // of all steps so far
  double training_s = 0;             // that the learner was at work
  double rollouts_busy_s = 0;        // that rollouts decoded or installed, each on its own
  double rollouts_up_s = 0;
  std::int64_t tokens_trained = 0;
};

// The middle half of the steps: first … last, counted from 1, from the commit of the step before
// the first one to that of the last one.
struct SteadyPart {
  std::int64_t first = 0, last = 0;
  double seconds = 0;
  double tokens_trained_per_s = 0;
  double trainer_idle_fraction = 0, rollout_idle_fraction = 0;

  std::int64_t steps() const { return last - first + 1; }
};

// A quarter of the steps is left out at each end. nullopt where there are fewer than four steps, or
// where those in the middle took no time.
std::optional<SteadyPart> steady_part(std::span<const ForecastStep> steps);

}  // namespace tandem::forecast
