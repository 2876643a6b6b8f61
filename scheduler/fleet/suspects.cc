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
  for (const Key item : crash.held) {
    Suspicion& suspicion = suspicions_[item];
    ++suspicion.crashes;
    suspicion.alone += crash.alone ? 1 : 0;
    suspicion.last_alone = crash.alone;
    suspicion.others_work = suspicion.others_work || (crash.alone && crash.worked);
    suspicion.actor = crash.actor;
  }
}

template <class Key>
void SuspectsOf<Key>::generated(Key item, const std::string& actor) {
  suspicions_.erase(item);
  worked(actor);
}

template <class Key>
void SuspectsOf<Key>::worked(const std::string& actor) {
  for (auto& [other, suspicion] : suspicions_)
    if (suspicion.actor == actor) suspicion.others_work = true;
}

template <class Key>
void SuspectsOf<Key>::forget(Key item) {
  suspicions_.erase(item);
}

template <class Key>
bool SuspectsOf<Key>::is_isolated(Key item) const {
  const auto found = suspicions_.find(item);
  return found != suspicions_.end() && isolated_by(found->second);
}

template <class Key>
bool SuspectsOf<Key>::is_guilty(Key item) const {
  const auto found = suspicions_.find(item);
  if (found == suspicions_.end()) return false;
  const Suspicion& suspicion = found->second;
  const bool again = suspicion.alone > 1 || suspicion.crashes > kCrashesInCompanyMax;
  return suspicion.last_alone && again && suspicion.others_work;
}

template <class Key>
std::vector<Key> SuspectsOf<Key>::isolated() const {
  std::vector<Key> items;
  for (const auto& [item, suspicion] : suspicions_)
    if (isolated_by(suspicion)) items.push_back(item);
  std::ranges::stable_sort(items, {}, [this](Key item) { return suspicions_.at(item).crashes; });
  return items;
}

template class SuspectsOf<GroupId>;
template class SuspectsOf<std::int32_t>;

}  // namespace tandem::scheduler
