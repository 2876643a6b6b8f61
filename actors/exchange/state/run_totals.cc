#include "actors/exchange/state/run_totals.h"

#include <algorithm>

namespace tandem::exchange {

std::int64_t StalenessCount::max() const { return bins.empty() ? 0 : bins.back().staleness; }

double StalenessCount::mean() const {
  double sum = 0, count = 0;
  for (const StalenessBin& bin : bins) {
    sum += static_cast<double>(bin.staleness * bin.trajectories);
    count += static_cast<double>(bin.trajectories);
  }
  return count > 0 ? sum / count : 0;
}

// The bins ascend by staleness, so the counts add up from the lowest.
std::int64_t StalenessCount::quantile(double q) const {
  std::int64_t total = 0;
  for (const StalenessBin& bin : bins) total += bin.trajectories;
  std::int64_t seen = 0;
  for (const StalenessBin& bin : bins) {
    seen += bin.trajectories;
    if (static_cast<double>(seen) >= q * static_cast<double>(total)) return bin.staleness;
  }
  return 0;
}

void StalenessCount::add(std::int64_t staleness, std::int64_t trajectories) {
  const auto place = std::ranges::lower_bound(bins, staleness, {}, &StalenessBin::staleness);
  if (place != bins.end() && place->staleness == staleness)
    place->trajectories += trajectories;
  else
    bins.insert(place, {staleness, trajectories});
}

void StalenessCount::add(const StalenessCount& other) {
  for (const StalenessBin& bin : other.bins) add(bin.staleness, bin.trajectories);
}

}  // namespace tandem::exchange
