// The figures of one batch that follow from its groups' headers and rewards alone. Pure.
#pragma once

#include <cstdint>
#include <span>

#include "actors/exchange/group_filter.h"
#include "actors/exchange/state/run_facts.h"
#include "actors/exchange/state/run_totals.h"
#include "runtime/base/ids.h"

namespace tandem::exchange {

// How some numbers are spread; zeros where there are none.
struct Spread {
  double mean = 0, min = 0, max = 0;
  double std = 0;  // with n - 1, as torch.std; 0 for a single number
};
Spread spread_of(std::span<const float> values);

struct BatchFigures {
  StalenessCount staleness;
  Spread rewards;  // the trajectories' rewards
  // Shares of the groups in which every completion succeeds, and in which none does; a completion
  // succeeds when its reward is above kSuccessAbove (evaluation_means.h).
  double solved_all = 0, solved_none = 0;
  double completion_tokens_mean = 0, completion_tokens_max = 0;
  double truncated_fraction = 0;    // of the trajectories
  std::int64_t rewards_failed = 0;  // trajectories, as TrainedTotals'
  std::int64_t kept = 0;            // groups that the filter is for (GroupScored::kept)
};

// The groups have headers and rewards.
BatchFigures figures_of_batch(StepId step, std::span<const GroupFacts* const> groups,
                              const GroupFilter& filter);

}  // namespace tandem::exchange
