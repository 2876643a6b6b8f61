#include "scheduler/fleet/fleet_advice.h"

#include <algorithm>
#include <numeric>

#include "runtime/base/check.h"
#include "scheduler/fleet/fleet_gap.h"

namespace tandem::scheduler {
namespace {

// What every rule looks at.
struct Look {
  const RecoveryFacts& facts;
  FleetModel model;

  std::int64_t matched(const FleetModel& mended) const {
    return std::min(matched_rollouts(mended, facts.headroom),
                    matched_rollouts(model, facts.headroom));
  }
};

bool by_rate(const RolloutRate& a, const RolloutRate& b) { return a.tokens_per_s < b.tokens_per_s; }

std::optional<Advice> deaths(const Look& look) {
  if (look.facts.rates.rollout_deaths <= 0) return std::nullopt;
  return Advice{.kind = AdviceKind::kDeaths,
                .seen = static_cast<double>(look.facts.rates.rollout_deaths),
                .threshold = 0,
                .actor = {},
                .matched_after = {}};
}

std::optional<Advice> spread(const Look& look) {
  const auto& rollouts = look.facts.rates.rollouts;
  if (rollouts.size() < 2) return std::nullopt;
  const auto [slowest, fastest] = std::ranges::minmax_element(rollouts, by_rate);
  const double sum = std::accumulate(
      rollouts.begin(), rollouts.end(), 0.0,
      [](double total, const RolloutRate& one) { return total + one.tokens_per_s; });
  const double mean = sum / static_cast<double>(rollouts.size());
  const double seen = (fastest->tokens_per_s - slowest->tokens_per_s) / mean;
  if (seen <= kSpreadMost) return std::nullopt;
  // The slow ones become as fast as the median one.
  std::vector<double> rates = look.model.rollouts_per_s;
  std::ranges::sort(rates);
  const double median = rates[rates.size() / 2];
  FleetModel mended = look.model;
  for (double& rate : mended.rollouts_per_s) rate = std::max(rate, median);
  return Advice{.kind = AdviceKind::kSpread,
                .seen = seen,
                .threshold = kSpreadMost,
                .actor = slowest->actor,
                .matched_after = look.matched(mended)};
}

std::optional<LimitRaise> limit_that_holds_up(const RecoveryFacts& facts) {
  if (facts.rates.trainer_idle_fraction <= facts.trainer_idle_target) return std::nullopt;
  const auto gap = gap_of({.rates = facts.rates,
                           .overlaps = facts.staleness_max > 0,
                           .rollouts = facts.rollouts,
                           .limits = facts.limits});
  return gap && gap->cause ? gap->cause->raise : std::nullopt;
}

std::optional<Advice> work_limit(const Look& look) {
  const auto raise = limit_that_holds_up(look.facts);
  if (!raise) return std::nullopt;
  return Advice{.kind = AdviceKind::kWorkLimit,
                .seen = static_cast<double>(raise->now),
                .threshold = static_cast<double>(raise->raised),
                .actor = {},
                .matched_after = {},
                .raise = raise};
}

// Sequences per second of an engine that decodes so many at once.
double decoded_per_s(const StepCosts& costs, double sequences) {
  return sequences / (costs.step_s + costs.sequence_s * sequences);
}

// A step costs less for each sequence the more of them it has, as far as the fit of the costs can
// tell.
std::optional<Advice> full_batch(const Look& look) {
  const RecoveryFacts& facts = look.facts;
  const FleetRates& rates = facts.rates;
  const StepCosts& costs = rates.engine;
  if (facts.rollouts <= 0 || facts.limits.sequences_max <= 0 || costs.step_s <= 0 ||
      rates.trainer_idle_fraction <= facts.trainer_idle_target || limit_that_holds_up(facts))
    return std::nullopt;
  double sequences = 0;
  for (const RolloutRate& rollout : rates.rollouts) sequences += rollout.sequences;
  sequences /= static_cast<double>(rates.rollouts.size());
  const auto most = static_cast<double>(sequence_limit(facts.limits).now);
  if (sequences < kBatchFull * most) return std::nullopt;
  const Rates flow = rates_of(look.model);
  const double lacking = flow.consumed_per_s / (flow.instance_per_s * facts.headroom *
                                                static_cast<double>(facts.rollouts));
  // Of as many sequences as make it up, or of four times as many where none does.
  const double wanted = lacking * decoded_per_s(costs, most);
  const double left = 1 - wanted * costs.sequence_s;
  const double needed = left > 0 ? std::min(wanted * costs.step_s / left, 4 * most) : 4 * most;
  const auto raise = more_sequences(
      facts.limits, {.times = needed / most, .rollouts = facts.rollouts, .headroom = 1});
  if (!raise) return std::nullopt;
  const double gain =
      decoded_per_s(costs, static_cast<double>(raise->raised)) / decoded_per_s(costs, most);
  if (gain < kBatchGainLeast) return std::nullopt;
  FleetModel mended = look.model;
  for (double& rate : mended.rollouts_per_s) rate *= gain;
  return Advice{.kind = AdviceKind::kFullBatch,
                .seen = sequences,
                .threshold = kBatchFull * most,
                .actor = {},
                .matched_after = look.matched(mended),
                .raise = raise};
}

std::optional<Advice> prefix_hits(const Look& look) {
  const RecoveryFacts& facts = look.facts;
  if (facts.completions_per_prompt < 2 || !facts.rates.prefix_hit_ratio) return std::nullopt;
  const double saved = prompt_share_saved(facts, *facts.rates.prefix_hit_ratio);
  const double least = prompt_share_promised(facts.completions_per_prompt) - kPrefixShortfallMost;
  if (saved >= least) return std::nullopt;
  // The time that prompts take is not measured, so that the fleet without it is not known.
  return Advice{.kind = AdviceKind::kPrefixHits,
                .seen = saved,
                .threshold = least,
                .actor = {},
                .matched_after = {}};
}

std::optional<Advice> install_pause(const Look& look) {
  if (look.model.pause_fraction <= kInstallPauseMost) return std::nullopt;
  FleetModel mended = look.model;
  mended.pause_fraction = 0;
  return Advice{.kind = AdviceKind::kInstallPause,
                .seen = look.model.pause_fraction,
                .threshold = kInstallPauseMost,
                .actor = {},
                .matched_after = look.matched(mended)};
}

// Slack is worth nothing while the trainer does not wait, or where it waits for something else.
std::optional<Advice> staleness_slack(const Look& look) {
  const RecoveryFacts& facts = look.facts;
  if (facts.rates.trainer_idle_fraction <= facts.trainer_idle_target || limit_that_holds_up(facts))
    return std::nullopt;
  Advice advice{.kind = AdviceKind::kStalenessSlack,
                .seen = 0,
                .threshold = kStalenessUsedLeast,
                .actor = {},
                .matched_after = {}};
  if (facts.staleness_max == 0) return advice;
  if (!facts.staleness_mean) return std::nullopt;
  advice.seen = *facts.staleness_mean / static_cast<double>(facts.staleness_max);
  if (advice.seen >= kStalenessUsedLeast) return std::nullopt;
  return advice;
}

std::optional<Advice> waste(const Look& look) {
  if (look.model.generated_per_trained <= kGeneratedPerTrainedMost) return std::nullopt;
  FleetModel mended = look.model;
  mended.generated_per_trained = 1;
  return Advice{.kind = AdviceKind::kWaste,
                .seen = look.model.generated_per_trained,
                .threshold = kGeneratedPerTrainedMost,
                .actor = {},
                .matched_after = look.matched(mended)};
}

}  // namespace

double prompt_share_promised(std::int64_t completions_per_prompt) {
  CHECK(completions_per_prompt > 0);
  const auto n = static_cast<double>(completions_per_prompt);
  return (n - 1) / n;
}

double prompt_share_saved(const RecoveryFacts& facts, double hit_ratio) {
  if (!facts.group_prompt_shared) return hit_ratio;
  const double computed = 1 - prompt_share_promised(facts.completions_per_prompt);
  return 1 - computed * (1 - hit_ratio);
}

std::vector<Advice> recoveries(const RecoveryFacts& facts) {
  const Look look{facts, model_of(facts.rates, facts.staleness_max > 0)};
  std::vector<Advice> all;
  for (const auto rule :
       {deaths, spread, work_limit, full_batch, prefix_hits, install_pause, staleness_slack, waste})
    if (auto advice = rule(look)) all.push_back(*std::move(advice));
  return all;
}

}  // namespace tandem::scheduler
