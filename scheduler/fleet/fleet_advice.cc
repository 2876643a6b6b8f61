#include "scheduler/fleet/fleet_advice.h"

#include <algorithm>
#include <numeric>

#include "runtime/base/check.h"

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

// Slack is worth nothing while the trainer does not wait.
std::optional<Advice> staleness_slack(const Look& look) {
  const RecoveryFacts& facts = look.facts;
  if (facts.rates.trainer_idle_fraction <= facts.trainer_idle_target) return std::nullopt;
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
  for (const auto rule : {deaths, spread, prefix_hits, install_pause, staleness_slack, waste})
    if (auto advice = rule(look)) all.push_back(*std::move(advice));
  return all;
}

}  // namespace tandem::scheduler
