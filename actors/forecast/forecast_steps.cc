#include "actors/forecast/forecast_steps.h"

#include <algorithm>

namespace tandem::forecast {

std::optional<SteadyPart> steady_part(std::span<const ForecastStep> steps) {
  const std::size_t quarter = steps.size() / 4;
  if (quarter == 0) return std::nullopt;
  const ForecastStep& before = steps[quarter - 1];
  const ForecastStep& last = steps[steps.size() - quarter - 1];
  const double seconds = last.at_s - before.at_s;
  if (seconds <= 0) return std::nullopt;
  const auto idle = [](double busy, double of) {
    return of > 0 ? std::clamp(1 - busy / of, 0.0, 1.0) : 0;
  };
  return SteadyPart{.first = static_cast<std::int64_t>(quarter) + 1,
                    .last = static_cast<std::int64_t>(steps.size() - quarter),
                    .seconds = seconds,
                    .tokens_trained_per_s =
                        static_cast<double>(last.tokens_trained - before.tokens_trained) / seconds,
                    .trainer_idle_fraction = idle(last.training_s - before.training_s, seconds),
                    .rollout_idle_fraction = idle(last.rollouts_busy_s - before.rollouts_busy_s,
                                                  last.rollouts_up_s - before.rollouts_up_s)};
}

}  // namespace tandem::forecast
