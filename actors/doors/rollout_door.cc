// The door of rollouts at an exchange.
#include <algorithm>
#include <array>

#include "actors/doors/message_checks.h"

namespace tandem::doors {

namespace {

Result<void> check(const messages::RolloutUp& up) {
  if (up.capacity < 1) return wrong("RolloutUp: a capacity of " + std::to_string(up.capacity));
  return {};
}

Result<void> check(const messages::RolloutBack& back) {
  if (back.capacity < 1 || back.held.size() > messages::kHeldMax ||
      (back.installed && !is_version(*back.installed)))
    return wrong("RolloutBack: a capacity of " + std::to_string(back.capacity) + ", " +
                 std::to_string(back.held.size()) + " groups, or a version that is none");
  return {};
}

Result<void> check(const messages::Installed& installed) {
  if (!is_version(installed.version) || !is_amount(installed.seconds))
    return wrong("Installed: version " + std::to_string(installed.version.value));
  return {};
}

Result<void> check(const messages::VersionDamaged& damaged) {
  if (!is_version(damaged.version))
    return wrong("VersionDamaged: version " + std::to_string(damaged.version.value));
  return {};
}

// Whether the group and its lease exist is for the exchange to say.
Result<void> check(const messages::Generated& generated) {
  for (const messages::GroupHeader& group : generated.groups) {
    const std::string name = "Generated: group " + std::to_string(group.group.value);
    if (group.prompt_tokens < 0 || group.trajectories.empty())
      return wrong(name + " has no trajectories, or a prompt of less than no tokens");
    for (const messages::TrajectoryHeader& trajectory : group.trajectories)
      if (!is_version(trajectory.oldest) || !is_version(trajectory.newest) ||
          trajectory.oldest > trajectory.newest || trajectory.completion_tokens < 0)
        return wrong(name + " has a trajectory of versions " +
                     std::to_string(trajectory.oldest.value) + " to " +
                     std::to_string(trajectory.newest.value) + " and " +
                     std::to_string(trajectory.completion_tokens) + " tokens");
  }
  return {};
}

Result<void> check(const messages::Unservable&) { return {}; }

Result<void> check(const messages::EngineBroke&) { return {}; }

Result<void> check(const messages::Evaluated& evaluated) {
  const bool indices = std::ranges::all_of(
      evaluated.completions, [](const auto& text) { return text.index >= 0 && text.sample >= 0; });
  if (indices && std::ranges::all_of(evaluated.unservable, [](int index) { return index >= 0; }))
    return {};
  return wrong("Evaluated: an index below 0");
}

// Histograms are summed by bucket, so both sides must have the same number of buckets.
Result<void> check(const messages::Latencies& latencies) {
  for (const messages::LatencyFamily& family : messages::kLatencyFamilies) {
    const messages::Histogram& histogram = latencies.*family.histogram;
    const std::string name = std::string("RolloutStats: ") + family.name;
    if (histogram.counts.size() != family.bounds.size() + 1)
      return wrong(name + " has " + std::to_string(histogram.counts.size()) + " buckets, not " +
                   std::to_string(family.bounds.size() + 1));
    if (!is_amount(histogram.sum) ||
        std::ranges::any_of(histogram.counts, [](auto count) { return count > kCountMax; }))
      return wrong(name + " has a count or a sum that no engine reaches");
  }
  return {};
}

bool are_amounts(const FitSums& sums) {
  return std::ranges::all_of(std::array{sums.count, sums.x1, sums.x2, sums.y, sums.x1x1, sums.x1x2,
                                        sums.x2x2, sums.x1y, sums.x2y},
                             [](double sum) { return is_amount(sum); });
}

Result<void> check(const messages::RolloutStats& stats) {
  // Counters are unsigned; the wire has checked their type.
  if (stats.requests_running < 0 || stats.requests_waiting < 0 ||
      !is_amount(stats.kv_cache_usage) || !is_amount(stats.busy_seconds) ||
      !is_amount(stats.missing_seconds) || !are_amounts(stats.step_seconds) ||
      (stats.missing && !is_version(*stats.missing)) ||
      (stats.first && (stats.first->tokens < 0 || stats.first->tokens_max < 0)))
    return wrong("RolloutStats: a count below 0, or a figure that is none");
  return check(stats.latencies);
}

}  // namespace

template <>
struct Checks<messages::RolloutPeer> {
  Result<void> operator()(const auto& message) const { return check(message); }
};
template link::Door<messages::RolloutPeer::Events> exchange_door<messages::RolloutPeer>(
    const std::string&);

}  // namespace tandem::doors
