#include "scheduler/fleet/sizing.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "runtime/base/check.h"

namespace tandem::scheduler {
namespace {

constexpr double kPauseMost = 0.99;
constexpr double kWorthwhile = 0.05;

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

std::string whole_percent(double fraction) {
  return std::to_string(std::lround(100 * fraction)) + " %";
}

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

double tokens_per_s(const TokenFlow& flow) {
  CHECK(flow.seconds > 0);
  return flow.completions * flow.tokens_mean / flow.seconds;
}

IdleSide idle_side(double generated_per_s, double required_per_s) {
  if (generated_per_s < required_per_s) return IdleSide::kTrainer;
  return generated_per_s > required_per_s ? IdleSide::kRollouts : IdleSide::kNeither;
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
  // What is no number stays none, for check_model() to refuse.
  const double generated = rates.generated_per_trained;
  FleetModel model{.rollouts_per_s = {},
                   .pause_fraction = 0,
                   .generated_per_trained = generated < 1 ? 1 : generated,
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

Result<void> check_model(const FleetModel& model, double headroom) {
  const auto fault = [](const std::string& what, const std::string& help) {
    return Error{ErrorCode::kInvalid, what, "", help};
  };
  const auto positive = [](double value) { return std::isfinite(value) && value > 0; };
  if (!(headroom > 0 && headroom <= 1))
    return fault("the headroom is no share above 0 and up to 1", "0.8 is usual");
  if (model.rollouts_per_s.empty() || !std::ranges::all_of(model.rollouts_per_s, positive))
    return fault("the rollouts' tokens per second are no positive number",
                 "measure them under the settings of the job");
  if (!positive(model.step_tokens) || !positive(model.step_seconds))
    return fault("the trainer's tokens or seconds per step are no positive number",
                 "they are those of a step that does not wait for samples");
  if (!(model.pause_fraction >= 0 && model.pause_fraction < 1))
    return fault("the rollouts' pauses take no share below 1 of their time",
                 "a pause must be shorter than a step");
  if (!positive(model.generated_per_trained) || model.generated_per_trained < 1)
    return fault("fewer tokens are generated than trained", "the least is 1 for each of them");
  const Rates rates = rates_of(model);
  const double needed = rates.consumed_per_s / (rates.instance_per_s * headroom);
  if (!positive(rates.consumed_per_s) || !positive(rates.instance_per_s) ||
      !(needed <= static_cast<double>(kRolloutsMost)))
    return fault("the trainer would need more than " + std::to_string(kRolloutsMost) + " rollouts",
                 "are the rates in tokens per second, and the step in seconds?");
  return {};
}

Rates rates_of(const FleetModel& model) {
  CHECK(!model.rollouts_per_s.empty() && model.step_seconds > 0);
  return {.consumed_per_s = model.step_tokens / model.step_seconds,
          .instance_per_s = mean_of(model) * useful_fraction(model)};
}

SteadyState steady_state(const FleetModel& model, std::int64_t rollouts) {
  CHECK(rollouts > 0 && model.step_tokens > 0 && model.step_seconds > 0);
  const std::int64_t known = std::min<std::int64_t>(rollouts, std::ssize(model.rollouts_per_s));
  double supply =  // tokens per second that are trained in the end
      std::accumulate(model.rollouts_per_s.begin(), model.rollouts_per_s.begin() + known, 0.0);
  if (rollouts > known) supply += static_cast<double>(rollouts - known) * mean_of(model);
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
