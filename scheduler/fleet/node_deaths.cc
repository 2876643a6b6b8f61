#include "scheduler/fleet/node_deaths.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

namespace tandem::scheduler {
namespace {

constexpr std::size_t kDeathsKept = 1000;  // of all nodes
constexpr std::int32_t kDeathsMin = 3;
constexpr std::size_t kActorsMin = 2;  // but for a single GPU

bool lies_in(const DeathPlace& one, const DeathPlace& place) {
  return one.node == place.node && (place.gpus.empty() || one.gpus == place.gpus);
}

}  // namespace

void NodeDeaths::died(NodeDeath death) {
  while (!deaths_.empty() &&
         (death.at - deaths_.front().at > kNodeDeathsWithin || deaths_.size() >= kDeathsKept))
    drop_first();
  ++by_kind_[death.kind][death.place];
  deaths_.push_back(std::move(death));
}

void NodeDeaths::drop_first() {
  uncount(deaths_.front());
  deaths_.pop_front();
}

void NodeDeaths::uncount(const NodeDeath& death) {
  const auto kind = by_kind_.find(death.kind);
  if (const auto place = kind->second.find(death.place); --place->second == 0)
    kind->second.erase(place);
  if (kind->second.empty()) by_kind_.erase(kind);
}

std::optional<std::string> NodeDeaths::fault_of(const DeathPlace& place,
                                                const WorksElsewhere& works) const {
  std::int32_t count = 0;
  std::set<std::string> actors;
  const NodeDeath* last = nullptr;
  std::map<std::string_view, bool> counts;  // by kind
  for (const NodeDeath& death : deaths_) {
    if (!lies_in(death.place, place)) continue;
    if (death.place != place && at_fault_.contains(death.place)) continue;
    const auto [at, is_new] = counts.try_emplace(death.kind);
    if (is_new)
      at->second =
          std::ranges::all_of(by_kind_.at(death.kind),
                              [&](const auto& own) { return lies_in(own.first, place); }) &&
          works(death.kind);
    if (!at->second) continue;
    ++count;
    actors.insert(death.actor);
    last = &death;
  }
  const std::size_t actors_min = place.gpus.size() == 1 ? 1 : kActorsMin;
  if (count < kDeathsMin || actors.size() < actors_min) return std::nullopt;
  const bool one = actors.size() == 1;
  return (one ? "1 actor" : std::to_string(actors.size()) + " actors") + " died here " +
         std::to_string(count) + " times within 10 minutes while others like " +
         (one ? "it" : "them") + " work elsewhere; the last: " + last->actor + ", " + last->cause;
}

void NodeDeaths::found_at_fault(const DeathPlace& place) { at_fault_.insert(place); }

std::vector<DeathPlace> NodeDeaths::cleared_by(const std::string& actor,
                                               const DeathPlace& place) const {
  std::vector<DeathPlace> cleared;
  for (const DeathPlace& other : at_fault_) {
    bool died = false, others_died = false;
    for (const NodeDeath& death : deaths_)
      if (death.place == other) (death.actor == actor ? died : others_died) = true;
    if (other != place && died && !others_died) cleared.push_back(other);
  }
  return cleared;
}

void NodeDeaths::forget(const DeathPlace& place) {
  std::erase_if(deaths_, [&](const NodeDeath& death) {
    if (!lies_in(death.place, place)) return false;
    uncount(death);
    return true;
  });
  std::erase_if(at_fault_, [&](const DeathPlace& other) { return lies_in(other, place); });
}

}  // namespace tandem::scheduler
