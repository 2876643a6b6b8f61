#include "scheduler/fleet/node_deaths.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

namespace tandem::scheduler {
namespace {

constexpr std::size_t kDeathsKept = 1000;  // of all nodes
constexpr std::int32_t kDeathsMin = 3;
constexpr std::size_t kActorsMin = 2;  // except for a single GPU

bool lies_in(const DeathPlace& one, const DeathPlace& place) {
  return one.node == place.node && (place.gpus.empty() || one.gpus == place.gpus);
}

// Whether a death there is one elsewhere than in the place.
bool is_elsewhere(const DeathPlace& death, const DeathPlace& place) {
  const bool did_not_start = death.gpus.empty() && !place.gpus.empty();
  return !did_not_start && !lies_in(death, place);
}

}  // namespace

void NodeDeaths::died(NodeDeath death) {
  while (!deaths_.empty() &&
         (death.at - deaths_.front().at > kNodeDeathsWithin || deaths_.size() >= kDeathsKept))
    drop_first();
  ++by_kind_[death.kind][death.place];
  if (const auto found = at_fault_.find(death.place); found != at_fault_.end())
    found->second.insert(death.actor);
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
                              [&](const auto& own) { return !is_elsewhere(own.first, place); }) &&
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

void NodeDeaths::found_at_fault(const DeathPlace& place) {
  std::set<std::string>& actors = at_fault_[place];
  for (const NodeDeath& death : deaths_)
    if (death.place == place) actors.insert(death.actor);
}

std::vector<DeathPlace> NodeDeaths::cleared_by(const std::string& actor,
                                               const DeathPlace& place) const {
  std::vector<DeathPlace> cleared;
  for (const auto& [other, actors] : at_fault_)
    if (other != place && actors == std::set{actor}) cleared.push_back(other);
  return cleared;
}

void NodeDeaths::forget(const DeathPlace& place) {
  std::erase_if(deaths_, [&](const NodeDeath& death) {
    if (!lies_in(death.place, place)) return false;
    uncount(death);
    return true;
  });
  std::erase_if(at_fault_, [&](const auto& other) { return lies_in(other.first, place); });
}

}  // namespace tandem::scheduler
