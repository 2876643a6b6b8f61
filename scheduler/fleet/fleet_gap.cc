// The prediction knows the learner's steps, what rollouts generate while they are at work, their
// pauses and the tokens that are wasted. All else that holds a trainer up is a wait of its own
// kind, measured apart. Waits for rollouts that generate are in excess only as far as they are
// longer than predicted.
#include "scheduler/fleet/fleet_gap.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "runtime/base/check.h"
#include "scheduler/fleet/sizing.h"

namespace tandem::scheduler {
namespace {

double& seconds_of(WaitSeconds& waits, TrainerWait wait) {
  return waits[static_cast<std::size_t>(wait)];
}

std::string step_share(double seconds) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, seconds < 10 ? "%.2g s" : "%.0f s", seconds);
  return buffer;
}

std::string are_up(std::int64_t rollouts) {
  return rollouts == 1 ? "1 is up" : std::to_string(rollouts) + " are up";
}

GapCause cause_of(const FleetView& fleet, const SteadyState& predicted) {
  WaitSeconds excess = fleet.rates.waits;
  seconds_of(excess, TrainerWait::kNone) = 0;
  // Where nothing overlaps the last groups of a step are all of them, which is predicted.
  if (!fleet.overlaps)
    seconds_of(excess, TrainerWait::kSamples) +=
        std::exchange(seconds_of(excess, TrainerWait::kLast), 0);
  double known = predicted.trainer_idle_fraction * predicted.cycle_seconds;
  for (const TrainerWait wait : {TrainerWait::kSamples, TrainerWait::kLast}) {
    const double part = std::min(known, seconds_of(excess, wait));
    seconds_of(excess, wait) -= part;
    known -= part;
  }
  const auto most = std::ranges::max_element(excess);
  GapCause cause{static_cast<TrainerWait>(most - excess.begin()), *most, {}};
  if (*most <= 0) cause.wait = TrainerWait::kNone;
  const double cycle = fleet.rates.seconds / static_cast<double>(fleet.rates.steps);
  if (fleet.overlaps && cycle > *most)
    cause.raise = limit_behind(cause.wait, fleet.limits,
                               {.times = cycle / (cycle - *most), .rollouts = fleet.rollouts});
  return cause;
}

std::string key_and_value(const LimitRaise& raise) {
  return std::string(spelling(raise.limit)) + ": " + std::to_string(raise.now);
}

CauseWords sequences_words(const FleetGap& gap) {
  if (gap.rollout_ends > 0)
    return {"rollouts ended " + std::to_string(gap.rollout_ends) + " times in " +
                std::to_string(gap.steps) + " steps",
            ""};
  const std::string idle = "the rollouts' engines are idle for " +
                           whole_percent(gap.rollout_idle_measured) + " of their time";
  const auto& raise = gap.cause->raise;
  if (!raise) return {idle, ""};
  return {idle + " while groups wait for them: each has all that " + key_and_value(*raise) +
              " lets it have",
          "raise it to about " + std::to_string(raise->raised)};
}

}  // namespace

CauseWords cause_words(const FleetGap& gap) {
  const std::string time = step_share(gap.cause->seconds) + " of each step";
  switch (gap.cause->wait) {
    case TrainerWait::kLearner:
      return {"the learner was not up for " + time, ""};
    case TrainerWait::kCheckpoint:
      return {"checkpoints take " + time, ""};
    case TrainerWait::kEvaluation:
      return {"evaluations hold it up for " + time, ""};
    case TrainerWait::kScores:
      return {"it waits for scores for " + time, "more reward actors, or a faster reward"};
    case TrainerWait::kRollouts:
      return {"no rollout was up for " + time, ""};
    case TrainerWait::kWeights:
      // Else most of it is the way of the weights: publication, fetching, version by version.
      if (gap.install_seconds >= gap.cause->seconds / 2)
        return {"the install pause is " + step_share(gap.install_seconds) + " of each step", ""};
      return {"rollouts wait for the new weights for " + time, ""};
    case TrainerWait::kLast: {
      const std::string what =
          "it waits for the last completions of a step for " + time + ", while ";
      const auto& raise = gap.cause->raise;
      if (!raise) return {what + "async.max_staleness holds further groups back", ""};
      return {what + key_and_value(*raise) + " holds further groups back",
              "raise it to " + std::to_string(raise->raised) +
                  (raise->limit == WorkLimit::kStaleness ? ", if the recipe bears it" : "")};
    }
    case TrainerWait::kNone:  // its waits are not known
    case TrainerWait::kSamples:
      return sequences_words(gap);
  }
  CHECK(false);
}

namespace {

std::string cause_text(const FleetGap& gap) {
  const CauseWords words = cause_words(gap);
  return words.what + (words.mend.empty() ? "" : ": " + words.mend);
}

}  // namespace

std::optional<FleetGap> gap_of(const FleetView& fleet) {
  const FleetRates& rates = fleet.rates;
  if (rates.rollouts.empty() || rates.steps <= 0 || fleet.rollouts <= 0) return std::nullopt;
  const FleetModel model = model_of(rates, fleet.overlaps);
  if (!check_model(model)) return std::nullopt;
  const SteadyState predicted = steady_state(model, fleet.rollouts);
  FleetGap gap{
      .steps = rates.steps,
      .overlaps = fleet.overlaps,
      .autoscaled = fleet.autoscaled,
      .rollouts = fleet.rollouts,
      .rollouts_matched = matched_rollouts(model),
      .trainer_idle_fraction = predicted.trainer_idle_fraction,
      .rollout_idle_fraction = predicted.rollout_idle_fraction,
      .trainer_idle_measured = rates.trainer_idle_fraction,
      .rollout_idle_measured = rates.rollout_idle_fraction,
      .install_seconds = model.pause_fraction * rates.seconds / static_cast<double>(rates.steps),
      .rollout_ends = rates.rollout_deaths + rates.rollout_returns,
      .cause = {}};
  if (gap.trainer_idle_measured - gap.trainer_idle_fraction > kGapLarge)
    gap.cause = cause_of(fleet, predicted);
  return gap;
}

std::optional<std::string> text(const FleetGap& gap, const std::string& job) {
  if (gap.steps < kStepsJudged || gap.trainer_idle_measured <= kTrainerIdleTarget)
    return std::nullopt;
  const std::string measured = whole_percent(gap.trainer_idle_measured),
                    predicted = whole_percent(gap.trainer_idle_fraction);
  const bool lacks =
      gap.trainer_idle_fraction > kTrainerIdleTarget && gap.rollouts_matched > gap.rollouts;
  if (!lacks && gap.cause)
    return "predicted " + predicted + ", measured " + measured + ": " + cause_text(gap);
  std::string said = "trainer idle " + measured + " (predicted " + predicted + ")";
  if (lacks) {
    const std::string count = std::to_string(gap.rollouts_matched);
    said += ": " + (gap.autoscaled ? "more" : count) + " rollouts would match it, " +
            are_up(gap.rollouts) + ": " +
            (gap.autoscaled ? "autoscale decides, unless it is off (tandem describe " + job + ")"
                            : "tandem scale " + job + " rollout=" + count);
    if (gap.cause) said += "; beside that, " + cause_text(gap);
  } else if (!gap.overlaps) {
    said +=
        ": with async.max_staleness 0 it waits while rollouts generate, and more of them would "
        "hardly shorten that";
  }
  return said;
}

}  // namespace tandem::scheduler
