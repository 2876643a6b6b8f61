#include "scheduler/fleet/sizing.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "runtime/base/check.h"

namespace tandem::scheduler {
namespace {

constexpr double kSecondsPerDay = 24 * 60 * 60;
constexpr double kPauseMost = 0.99;
constexpr double kWorthwhile = 0.05;
constexpr std::int64_t kRolloutsMost = 1 << 20;

double mean_of(const FleetModel& model) {
  return std::accumulate(model.rollouts_per_s.begin(), model.rollouts_per_s.end(), 0.0) /
         static_cast<double>(model.rollouts_per_s.size());
}

// The share of a rollout's nominal rate that is trained in the end.
double useful_fraction(const FleetModel& model) {
  CHECK(model.pause_fraction >= 0 && model.pause_fraction < 1 && model.generated_per_trained > 0);
  return (1 - model.pause_fraction) / model.generated_per_trained;
}

double supply_per_s(const Rates& rates, std::int64_t instances) {
  CHECK(rates.consumed_per_s > 0 && rates.instance_per_s > 0 && instances > 0);
  return static_cast<double>(instances) * rates.instance_per_s;
}

}  // namespace

std::int64_t matched_instances(const Rates& rates, double headroom) {
  CHECK(rates.consumed_per_s > 0 && rates.instance_per_s > 0 && headroom > 0 && headroom <= 1);
  return static_cast<std::int64_t>(
      std::ceil(rates.consumed_per_s / (rates.instance_per_s * headroom)));
}

double trainer_idle_fraction(const Rates& rates, std::int64_t instances) {
  return std::max(0.0, 1.0 - supply_per_s(rates, instances) / rates.consumed_per_s);
}

double rollout_idle_fraction(const Rates& rates, std::int64_t instances) {
  return std::max(0.0, 1.0 - rates.consumed_per_s / supply_per_s(rates, instances));
}

double backlog_per_s(const Rates& rates, std::int64_t instances) {
  return std::max(0.0, supply_per_s(rates, instances) - rates.consumed_per_s);
}

double completions_per_s(const Replicas& replicas) {
  CHECK(replicas.seconds > 0);
  return static_cast<double>(replicas.count * replicas.completions) / replicas.seconds;
}

double seconds_to_complete(const Replicas& replicas, std::int64_t completions) {
  return static_cast<double>(completions) / completions_per_s(replicas);
}

FleetModel model_of(const FleetRates& rates, bool overlaps) {
  CHECK(!rates.rollouts.empty() && rates.steps > 0);
  FleetModel model{.rollouts_per_s = {},
                   .pause_fraction = 0,
                   .generated_per_trained = std::max(1.0, rates.generated_per_trained),
                   .step_seconds = rates.step_seconds,
                   .step_tokens = rates.step_tokens,
                   .completions_per_step = rates.completions_per_step,
                   .overlaps = overlaps};
  for (const RolloutRate& rollout : rates.rollouts) {
    model.rollouts_per_s.push_back(rollout.tokens_per_s);
    model.pause_fraction += rollout.install_fraction / static_cast<double>(rates.rollouts.size());
  }
  model.pause_fraction = std::min(model.pause_fraction, kPauseMost);
  return model;
}

Rates rates_of(const FleetModel& model) {
  CHECK(!model.rollouts_per_s.empty() && model.step_seconds > 0);
  return {.consumed_per_s = model.step_tokens / model.step_seconds,
          .instance_per_s = mean_of(model) * useful_fraction(model)};
}

SteadyState steady_state(const FleetModel& model, std::int64_t rollouts) {
  CHECK(rollouts > 0 && model.step_tokens > 0 && model.step_seconds > 0);
  double supply = 0;  // tokens per second that are trained in the end
  for (std::int64_t i = 0; i < rollouts; ++i)
    supply += static_cast<std::size_t>(i) < model.rollouts_per_s.size()
                  ? model.rollouts_per_s[static_cast<std::size_t>(i)]
                  : mean_of(model);
  supply *= useful_fraction(model);
  CHECK(supply > 0);
  const double produce = model.step_tokens / supply;
  const double cycle =
      model.overlaps ? std::max(model.step_seconds, produce) : model.step_seconds + produce;
  return {.rollouts = rollouts,
          .cycle_seconds = cycle,
          .trainer_idle_fraction = 1 - model.step_seconds / cycle,
          .rollout_idle_fraction = 1 - produce / cycle,
          .backlog_per_s =
              model.overlaps ? std::max(0.0, supply - model.step_tokens / model.step_seconds) : 0,
          .completions_per_s = model.completions_per_step / cycle,
          .steps_per_day = kSecondsPerDay / cycle};
}

std::int64_t matched_rollouts(const FleetModel& model, double headroom) {
  const Rates rates = rates_of(model);
  if (model.overlaps) return matched_instances(rates, headroom);
  // With n rollouts a cycle takes step + produce / n.
  const double produce = model.step_tokens / (rates.instance_per_s * headroom);
  std::int64_t n = 1;
  const auto cycle = [&](std::int64_t count) {
    return model.step_seconds + produce / static_cast<double>(count);
  };
  while (n < kRolloutsMost && cycle(n + 1) < (1 - kWorthwhile) * cycle(n)) ++n;
  return n;
}

}  // namespace tandem::scheduler
