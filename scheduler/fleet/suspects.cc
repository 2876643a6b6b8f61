#include "scheduler/fleet/suspects.h"

#include <algorithm>

namespace tandem::scheduler {
namespace {

constexpr std::int32_t kCrashesInCompanyMax = 2;  // further tries are alone

bool isolated_by(const Suspicion& suspicion) {
  return suspicion.alone > 0 || suspicion.crashes >= kCrashesInCompanyMax;
}

}  // namespace

template <class Key>
void SuspectsOf<Key>::crashed(const EngineCrashOf<Key>& crash) {
  for (const Key group : crash.groups) {
    Suspicion& suspicion = suspicions_[group];
    ++suspicion.crashes;
    suspicion.alone += crash.alone ? 1 : 0;
    suspicion.last_alone = crash.alone;
    suspicion.others_work = suspicion.others_work || (crash.alone && crash.worked);
    suspicion.actor = crash.actor;
  }
}

template <class Key>
void SuspectsOf<Key>::generated(Key group, const std::string& actor) {
  suspicions_.erase(group);
  worked(actor);
}

template <class Key>
void SuspectsOf<Key>::worked(const std::string& actor) {
  for (auto& [other, suspicion] : suspicions_)
    if (suspicion.actor == actor) suspicion.others_work = true;
}

template <class Key>
void SuspectsOf<Key>::forget(Key group) {
  suspicions_.erase(group);
}

template <class Key>
bool SuspectsOf<Key>::is_isolated(Key group) const {
  const auto found = suspicions_.find(group);
  return found != suspicions_.end() && isolated_by(found->second);
}

template <class Key>
bool SuspectsOf<Key>::is_guilty(Key group) const {
  const auto found = suspicions_.find(group);
  if (found == suspicions_.end()) return false;
  const Suspicion& suspicion = found->second;
  const bool again = suspicion.alone > 1 || suspicion.crashes > kCrashesInCompanyMax;
  return suspicion.last_alone && again && suspicion.others_work;
}

template <class Key>
std::vector<Key> SuspectsOf<Key>::isolated() const {
  std::vector<Key> groups;
  for (const auto& [group, suspicion] : suspicions_)
    if (isolated_by(suspicion)) groups.push_back(group);
  std::ranges::stable_sort(groups, {}, [this](Key group) { return suspicions_.at(group).crashes; });
  return groups;
}

template class SuspectsOf<GroupId>;
template class SuspectsOf<std::int32_t>;

}  // namespace tandem::scheduler
