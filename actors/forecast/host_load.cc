#include "actors/forecast/host_load.h"

#include <algorithm>
#include <utility>

namespace tandem::forecast {

void HostLoad::join(const std::string& actor, std::function<void()> changed) {
  members_[actor].changed = std::move(changed);
}

void HostLoad::leave(const std::string& actor) {
  work(actor, 0);
  members_.erase(actor);
}

void HostLoad::work(const std::string& actor, double threads) {
  const auto member = members_.find(actor);
  if (member == members_.end() || member->second.threads == threads) return;
  const double before = slowdown();
  working_ += threads - member->second.threads;
  member->second.threads = threads;
  if (slowdown() == before) return;
  for (const auto& [name, other] : members_)
    if (name != actor) other.changed();
}

double HostLoad::slowdown() const { return cores_ > 0 ? std::max(1.0, working_ / cores_) : 1.0; }

}  // namespace tandem::forecast
