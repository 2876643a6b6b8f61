// The throughput that a fleet can get back before rollouts are added to it, in the order in which
// it pays to look: rollouts that die or lag behind the others, keys of the job that keep work from
// them or their batches small, prompts that are computed more than once, pauses for installs,
// staleness that the recipe allows and nobody uses, and tokens that are generated in vain. Each
// piece of advice has the figure that was seen, the threshold that it has crossed, and the fleet
// that would match without it. Pure.
//
//   FA-1  Advice comes in the order of AdviceKind, each kind at most once.
//   FA-2  Advice never raises the number of rollouts that match.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/enum_names.h"
#include "scheduler/fleet/fleet_rates.h"
#include "scheduler/fleet/fleet_sizes.h"
#include "scheduler/fleet/sizing.h"
#include "scheduler/fleet/work_limits.h"

namespace tandem::scheduler {

enum class AdviceKind {
  kDeaths,
  kSpread,
  kWorkLimit,  // a key of the job keeps work from rollouts that have time for it
  kFullBatch,  // an engine decodes as many sequences as it may, and more at once would be faster
  kPrefixHits,
  kInstallPause,
  kStalenessSlack,
  kWaste
};
constexpr auto enum_names(AdviceKind) {
  using enum AdviceKind;
  return enum_name_rows<AdviceKind>({{kDeaths, "deaths"},
                                     {kSpread, "spread"},
                                     {kWorkLimit, "work_limit"},
                                     {kFullBatch, "full_batch"},
                                     {kPrefixHits, "prefix_hits"},
                                     {kInstallPause, "install_pause"},
                                     {kStalenessSlack, "staleness_slack"},
                                     {kWaste, "waste"}});
}

inline constexpr double kSpreadMost = 0.2;           // (fastest - slowest) / mean
inline constexpr double kPrefixShortfallMost = 0.1;  // below the share that n promises
inline constexpr double kInstallPauseMost = 0.05;    // of a rollout's time
inline constexpr double kStalenessUsedLeast = 0.5;   // mean staleness by its bound
inline constexpr double kGeneratedPerTrainedMost = 1.1;
inline constexpr double kBatchFull = 0.9;        // sequences of a mean step by their limit
inline constexpr double kBatchGainLeast = 1.15;  // times as fast, by a larger batch

struct RecoveryFacts {
  FleetRates rates;                         // of a run, with at least one rollout and step
  std::int64_t completions_per_prompt = 1;  // n
  // The engine computes the prompt of a group once and forks: look-ups are one per group then.
  bool group_prompt_shared = true;
  std::int64_t staleness_max = 0;        // K
  std::optional<double> staleness_mean;  // of what was trained
  double trainer_idle_target = kTrainerIdleTarget;
  double headroom = kSizingHeadroom;
  std::int64_t rollouts = 0;  // that the rates are of; 0: the plan is of another fleet
  WorkLimits limits;
};

struct Advice {
  AdviceKind kind;
  double seen = 0, threshold = 0;             // in the unit of the kind
  std::string actor;                          // the rollout that is meant, if one is
  std::optional<std::int64_t> matched_after;  // rollouts that match once it is mended, if known
  std::optional<LimitRaise> raise = {};       // of kWorkLimit and kFullBatch
};
std::vector<Advice> recoveries(const RecoveryFacts& facts);

// The share of a group's prompt tokens that need no computation, of look-ups with this hit ratio.
double prompt_share_saved(const RecoveryFacts& facts, double hit_ratio);
// The share that n completions of a prompt promise: (n - 1) / n.
double prompt_share_promised(std::int64_t completions_per_prompt);

}  // namespace tandem::scheduler
