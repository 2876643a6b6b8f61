// Which scored groups algorithm.filter_groups discards and replaces: dynamic sampling, of which
// DAPO (arXiv:2503.14476 §3.2) has the first rule and OpenRLHF (dynamic_filtering_reward_range) the
// second one. Pure. For how long groups are replaced is in scoring.h.
//
// A group's values are its rewards or, by_accuracy, 1 for each completion that succeeds (its reward
// is above kSuccessAbove, evaluation_means.h) and 0 for the others.
//
//   all values are the same            zero_variance
//   not lower < mean of values < upper outside_bounds; a bound that is absent holds
#pragma once

#include <optional>
#include <span>

#include "scheduler/fleet/ledger.h"

namespace tandem::exchange {

struct GroupFilter {
  bool enable = false;
  bool by_accuracy = false;
  std::optional<double> lower, upper;
};

// Why a group with these rewards is discarded; nullopt: it is trained. A filter that is not enabled
// discards no group.
std::optional<scheduler::DiscardReason> reason_to_filter(const GroupFilter& filter,
                                                         std::span<const float> rewards);

}  // namespace tandem::exchange
