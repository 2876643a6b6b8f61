// Prompts that kill engines: which groups are suspected after an engine has crashed, which of them
// are to be tried alone, and which one is guilty.
//
// Plain state of one job, changed by its exchange's events. The caller says which ends are crashes:
// ends that only the process itself can have caused, never a kill from outside. A crash alone
// proves nothing, since a broken GPU or a damaged library kills engines as well. So a group is
// guilty by its last crash when three things come together: no other work was in that engine; the
// group has been in crashes before; and engines of that actor work for other groups.
//
//   PQ-1  A group is isolated once it has been alone in a crash, or in two crashes.
//   PQ-2  A group is guilty only by a crash in which it was alone, after another one in which it
//         was alone or two others, and only if the actor has generated another group since the
//         group is suspected, or in the incarnation that crashed.
//   PQ-3  A group that is generated is suspected no more.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/ids.h"

namespace tandem::scheduler {

// Key: the name of what is generated. Groups have one each time that their prompt is admitted; a
// prompt of the evaluations is the same one in each of them, and its name is its index.
template <class Key>
struct EngineCrashOf {
  std::string actor;
  std::vector<Key> groups;  // that the engine held
  bool alone = false;       // one group, and no other work
  bool worked = false;      // this incarnation has generated another group before
};
using EngineCrash = EngineCrashOf<GroupId>;

struct Suspicion {
  std::int32_t crashes = 0;  // in which the group was held
  std::int32_t alone = 0;    // how many of these it was in alone
  bool last_alone = false;   // it was alone in the last one
  bool others_work = false;  // engines of an actor that it crashed work for other groups
  std::string actor;         // of the last crash
  bool operator==(const Suspicion&) const = default;
};

template <class Key>
class SuspectsOf {
 public:
  SuspectsOf() = default;
  explicit SuspectsOf(std::map<Key, Suspicion> all) : suspicions_(std::move(all)) {}

  void crashed(const EngineCrashOf<Key>& crash);
  void generated(Key group, const std::string& actor);
  void worked(const std::string& actor);  // it has generated something else
  void forget(Key group);                 // it is discarded

  bool is_isolated(Key group) const;
  bool is_guilty(Key group) const;  // by its last crash
  // The groups to be tried alone, those of the fewest crashes first: the others may show that the
  // engines work.
  std::vector<Key> isolated() const;
  const std::map<Key, Suspicion>& all() const { return suspicions_; }

 private:
  std::map<Key, Suspicion> suspicions_;
};
using Suspects = SuspectsOf<GroupId>;
extern template class SuspectsOf<GroupId>;
extern template class SuspectsOf<std::int32_t>;

}  // namespace tandem::scheduler
