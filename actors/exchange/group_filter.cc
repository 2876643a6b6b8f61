#include "actors/exchange/group_filter.h"

#include <algorithm>
#include <vector>

#include "actors/exchange/evaluation_means.h"

namespace tandem::exchange {

using scheduler::DiscardReason;

std::optional<DiscardReason> reason_to_filter(const GroupFilter& filter,
                                              std::span<const float> rewards) {
  if (!filter.enable || rewards.empty()) return std::nullopt;
  std::vector<double> values;
  double sum = 0;
  for (const float reward : rewards) {
    values.push_back(filter.by_accuracy ? (reward > kSuccessAbove ? 1 : 0)
                                        : static_cast<double>(reward));
    sum += values.back();
  }
  if (std::ranges::count(values, values[0]) == std::ssize(values))
    return DiscardReason::kZeroVariance;
  const double mean = sum / static_cast<double>(values.size());
  if ((filter.lower && mean <= *filter.lower) || (filter.upper && mean >= *filter.upper))
    return DiscardReason::kOutsideBounds;
  return std::nullopt;
}

}  // namespace tandem::exchange
