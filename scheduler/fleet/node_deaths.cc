#include "scheduler/fleet/node_deaths.h"

#include <map>
#include <set>
#include <string_view>
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
    drop_first();
  ++by_kind_[death.kind][death.node];
  deaths_.push_back(std::move(death));
}

void NodeDeaths::drop_first() {
  uncount(deaths_.front());
  deaths_.pop_front();
}

void NodeDeaths::uncount(const NodeDeath& death) {
  const auto kind = by_kind_.find(death.kind);
  if (const auto node = kind->second.find(death.node); --node->second == 0)
    kind->second.erase(node);
  if (kind->second.empty()) by_kind_.erase(kind);
}

std::optional<std::string> NodeDeaths::fault_of(const std::string& node,
                                                const WorksElsewhere& works) const {
  std::int32_t count = 0;
  std::set<std::string> actors;
  const NodeDeath* last = nullptr;
  std::map<std::string_view, bool> counts;  // by kind
  for (const NodeDeath& death : deaths_) {
    if (death.node != node) continue;
    const auto [at, is_new] = counts.try_emplace(death.kind);
    const bool dies_elsewhere = by_kind_.at(death.kind).size() > 1;
    if (is_new) at->second = !dies_elsewhere && works(death.kind, node);
    if (!at->second) continue;
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
  std::erase_if(deaths_, [&](const NodeDeath& death) {
    if (death.node != node) return false;
    uncount(death);
    return true;
  });
}

}  // namespace tandem::scheduler
