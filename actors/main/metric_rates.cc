#include "actors/main/metric_rates.h"

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "scheduler/fleet/placement.h"
#include "scheduler/fleet/sizing.h"

namespace tandem::app {
namespace {

using nlohmann::json;
using scheduler::FleetRates;

constexpr const char* kRollouts = "tandem/rollouts";

// The figure of one line; nullopt where it is missing or no number.
std::optional<double> figure(const json& line, const char* key) {
  const auto it = line.find(key);
  return it != line.end() && it->is_number() ? std::optional(it->get<double>()) : std::nullopt;
}

// The mean over the lines that have the figure; nullopt where none has.
std::optional<double> mean(std::span<const json> lines, const char* key) {
  double sum = 0;
  std::int64_t count = 0;
  for (const json& line : lines)
    if (const auto value = figure(line, key)) {
      sum += *value;
      ++count;
    }
  return count ? std::optional(sum / static_cast<double>(count)) : std::nullopt;
}

// The newest figure; nullopt where no line has one.
std::optional<double> newest(std::span<const json> lines, const char* key) {
  for (std::size_t i = lines.size(); i-- > 0;)
    if (const auto value = figure(lines[i], key)) return value;
  return std::nullopt;
}

// Of the newest line that has rates.
scheduler::WaitSeconds waits_of(std::span<const json> lines) {
  scheduler::WaitSeconds waits{};
  for (std::size_t at = lines.size(); at-- > 0;) {
    if (!figure(lines[at], "tandem/recent/trainer_idle_fraction")) continue;
    for (std::size_t i = 0; i < waits.size(); ++i)
      waits[i] = figure(lines[at], ("tandem/recent/wait_s/" +
                                    std::string(spelling(static_cast<scheduler::TrainerWait>(i))))
                                       .c_str())
                     .value_or(0);
    break;
  }
  return waits;
}

double share(double value) { return std::clamp(value, 0.0, 1.0); }

// Rates of so many rollouts that have this mean, and between them these extremes.
struct RateSpread {
  double mean, min, max;
};
std::vector<double> rates_within(const RateSpread& spread, std::int64_t count) {
  if (count == 1) return {spread.mean};
  if (count == 2) return {spread.max, spread.min};
  const auto n = static_cast<double>(count);
  const double middle = (n * spread.mean - spread.min - spread.max) / (n - 2);
  std::vector<double> rates(static_cast<std::size_t>(count),
                            std::clamp(middle, spread.min, spread.max));
  rates.front() = spread.max;
  rates.back() = spread.min;
  return rates;
}

}  // namespace

void MetricRates::add(const json& line) {
  if (!line.is_object() || line.contains("eval") || !figure(line, "timing_s/step")) return;
  ++steps_;
  lines_.push_back(line);
  if (std::ssize(lines_) > kWindowStepsMost + 1) lines_.pop_front();
}

std::optional<std::int64_t> MetricRates::rollouts() const {
  const auto up = lines_.empty() ? std::nullopt : figure(lines_.back(), kRollouts);
  if (!up) return std::nullopt;
  return static_cast<std::int64_t>(std::clamp<double>(*up, 0, scheduler::kReplicasMax));
}

std::size_t MetricRates::lines_of_fleet() const {
  const auto up = lines_.empty() ? std::nullopt : figure(lines_.back(), kRollouts);
  if (!up) return lines_.size();
  std::int64_t seen = 0, of_fleet = 0;  // of the newest lines
  for (auto line = lines_.rbegin(); line != lines_.rend(); ++line) {
    const auto there = figure(*line, kRollouts);
    if (!there || *there > *up || seen - of_fleet > scheduler::kStepsJudged) break;
    ++seen;
    if (*there == *up) of_fleet = seen;
  }
  return static_cast<std::size_t>(of_fleet);
}

Result<FleetRates> MetricRates::rates(const PoolPlan& plan) const {
  if (steps_ == 0)
    return Error{ErrorCode::kInvalid, "the run has committed no step yet, so it has no rates", "",
                 "wait for its first steps, or name a run that has some"};
  const std::int64_t half = std::clamp<std::int64_t>(
      std::max(steps_ / 2, std::min(steps_ - 1, scheduler::kStepsJudged)), 1, kWindowStepsMost);
  const auto of_fleet = static_cast<std::int64_t>(lines_of_fleet());
  const std::int64_t steps = std::min(half, of_fleet);
  const std::vector<json> kept(lines_.end() - std::min(steps + 1, std::ssize(lines_)),
                               lines_.end());
  const std::span<const json> lines = std::span(kept).last(static_cast<std::size_t>(steps));

  FleetRates rates{
      .steps = steps, .rollouts = {}, .prefix_hit_ratio = {}, .since_resize = of_fleet < half};
  rates.step_seconds = mean(lines, "timing_s/step").value_or(0);
  rates.completions_per_step = static_cast<double>(plan.completions_per_step());
  rates.step_tokens = rates.completions_per_step * mean(lines, "response_length/mean").value_or(0);
  rates.generated_per_trained =
      std::max(1.0, newest(lines, "tandem/tokens_generated_per_trained").value_or(1));
  rates.install_seconds = mean(lines, "tandem/install_pause_s").value_or(0);
  rates.prefix_hit_ratio = newest(lines, "tandem/prefix_hit_ratio");
  rates.rollout_idle_fraction = share(newest(lines, "tandem/rollout_idle_fraction").value_or(0));

  const double trained_seconds = rates.step_seconds * static_cast<double>(steps);
  const double since_start = newest(lines, "tandem/trainer_idle_fraction").value_or(0);
  rates.seconds = newest(lines, "tandem/wall_seconds").value_or(0) -
                  figure(kept.front(), "tandem/wall_seconds").value_or(0);
  if (std::ssize(kept) <= steps || rates.seconds <= 0)
    rates.seconds = trained_seconds / std::max(0.01, 1 - share(since_start));
  rates.trainer_idle_fraction = newest(lines, "tandem/recent/trainer_idle_fraction")
                                    .value_or(share(1 - trained_seconds / rates.seconds));

  rates.waits = waits_of(lines);
  const double sequences = newest(lines, "tandem/recent/sequences").value_or(0);
  const std::int64_t count =
      std::max<std::int64_t>(1, rollouts().value_or(plan.replicas.value_or(1)));
  const double busy = 1 - rates.rollout_idle_fraction;
  const double generated =
      rates.step_tokens * static_cast<double>(steps) * rates.generated_per_trained;
  const double up = std::max(1.0, mean(lines, kRollouts).value_or(static_cast<double>(count)));
  const double busy_seconds = rates.seconds * up * std::max(busy, 0.001);  // of all engines
  const double usual = busy_seconds > 0 ? generated / busy_seconds : 0;
  const double own = mean(lines, "tandem/rollout_tokens_per_s/mean").value_or(usual);
  const double pause = mean(lines, "tandem/install_pause_fraction").value_or(0);
  for (const double rate : rates_within({.mean = own,
                           .min = mean(lines, "tandem/rollout_tokens_per_s/min").value_or(own),
                           .max = mean(lines, "tandem/rollout_tokens_per_s/max").value_or(own)},
                                        count))
    rates.rollouts.push_back({.actor = "",  // the lines do not say which one
                              .tokens_per_s = rate,
                              .busy_fraction = busy,
                              .install_fraction = share(pause),
                              .sequences = sequences});
  return rates;
}

}  // namespace tandem::app
