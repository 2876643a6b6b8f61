#include "scheduler/fleet/node_deaths.h"

#include <algorithm>
#include <set>
#include <utility>

namespace tandem::scheduler {
namespace {

constexpr std::size_t kDeathsKept = 1000;  // of all nodes
constexpr std::int32_t kDeathsMin = 3;
constexpr std::size_t kActorsMin = 2;

}  // namespace

void NodeDeaths::died(NodeDeath death) {
  while (!deaths_.empty() &&
         (death.at - deaths_.front().at > kNodeDeathsWithin || deaths_.size() >= kDeathsKept))
    deaths_.pop_front();
  deaths_.push_back(std::move(death));
}

std::optional<std::string> NodeDeaths::fault_of(const std::string& node,
                                                const WorksElsewhere& works) const {
  std::int32_t count = 0;
  std::set<std::string> actors;
  const NodeDeath* last = nullptr;
  for (const NodeDeath& death : deaths_) {
    const bool dies_elsewhere = std::ranges::any_of(deaths_, [&](const NodeDeath& other) {
      return other.kind == death.kind && other.node != node;
    });
    if (death.node != node || dies_elsewhere || !works(death.kind, node)) continue;
    ++count;
    actors.insert(death.actor);
    last = &death;
  }
  if (count < kDeathsMin || actors.size() < kActorsMin) return std::nullopt;
  return std::to_string(actors.size()) + " actors died here " + std::to_string(count) +
         " times within 10 minutes and work elsewhere; the last: " + last->actor + ", " +
         last->cause;
}

void NodeDeaths::forget(const std::string& node) {
  std::erase_if(deaths_, [&](const NodeDeath& death) { return death.node == node; });
}

}  // namespace tandem::scheduler
