#include "scheduler/fleet/suspects.h"

#include <algorithm>

namespace tandem::scheduler {
namespace {

constexpr std::int32_t kCrashesInCompanyMax = 2;  // further tries are alone

bool isolated_by(const Suspicion& suspicion) {
  return suspicion.alone > 0 || suspicion.crashes >= kCrashesInCompanyMax;
}

}  // namespace

void Suspects::crashed(const EngineCrash& crash) {
  for (const GroupId group : crash.groups) {
    Suspicion& suspicion = suspicions_[group];
    ++suspicion.crashes;
    suspicion.alone += crash.alone ? 1 : 0;
    suspicion.last_alone = crash.alone;
    suspicion.others_work = suspicion.others_work || (crash.alone && crash.worked);
    suspicion.actor = crash.actor;
  }
}

void Suspects::generated(GroupId group, const std::string& actor) {
  if (suspicions_.empty()) return;
  suspicions_.erase(group);
  for (auto& [other, suspicion] : suspicions_)
    if (suspicion.actor == actor) suspicion.others_work = true;
}

void Suspects::forget(GroupId group) { suspicions_.erase(group); }

bool Suspects::is_isolated(GroupId group) const {
  const auto found = suspicions_.find(group);
  return found != suspicions_.end() && isolated_by(found->second);
}

bool Suspects::is_guilty(GroupId group) const {
  const auto found = suspicions_.find(group);
  if (found == suspicions_.end()) return false;
  const Suspicion& suspicion = found->second;
  const bool again = suspicion.alone > 1 || suspicion.crashes > kCrashesInCompanyMax;
  return suspicion.last_alone && again && suspicion.others_work;
}

std::vector<GroupId> Suspects::isolated() const {
  std::vector<GroupId> groups;
  for (const auto& [group, suspicion] : suspicions_)
    if (isolated_by(suspicion)) groups.push_back(group);
  std::ranges::stable_sort(groups, {},
                           [this](GroupId group) { return suspicions_.at(group).crashes; });
  return groups;
}

}  // namespace tandem::scheduler
