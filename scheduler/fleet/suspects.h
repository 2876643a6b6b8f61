// Prompts that kill engines. An engine holds groups and prompts of evaluations; each of them is
// called an item here. After an engine has crashed: which items are suspected, which of them are to
// be tried alone, and which one is guilty.
//
// Plain state of one job, changed by its exchange's events. The caller says which ends are crashes:
// ends that the engine's own work can have caused, by a fault or by a hang, never a kill or a stop
// from outside. A crash alone proves nothing, since a broken GPU or a damaged library kills engines
// as well, and a machine that stands still for a while makes them hang. So an item is
// guilty by its last crash when three things come together: no other work was in that engine; the
// item has been in crashes before; and engines of that actor work for other items.
//
//   PQ-1  An item is isolated once it has been alone in a crash, or in two crashes.
//   PQ-2  An item is guilty only by a crash in which it was alone, after another one in which it
//         was alone or two others, and only if the actor has generated another item since the
//         item is suspected, or in the incarnation that crashed.
//   PQ-3  An item that is generated is suspected no more.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/ids.h"

namespace tandem::scheduler {

// Key: the name of an item. A group has a new name each time that its prompt is admitted; a prompt
// of the evaluations has the same one in each of them, its index.
template <class Key>
struct EngineCrashOf {
  std::string actor;
  std::vector<Key> held;  // the items that the engine held
  bool alone = false;     // one item, and no other work
  bool worked = false;    // this incarnation has generated another item before
};
using EngineCrash = EngineCrashOf<GroupId>;

struct Suspicion {
  std::int32_t crashes = 0;  // in which the item was held
  std::int32_t alone = 0;    // how many of these it was in alone
  bool last_alone = false;   // it was alone in the last one
  bool others_work = false;  // engines of an actor that it crashed work for other items
  std::string actor;         // of the last crash
  bool operator==(const Suspicion&) const = default;
};

template <class Key>
class SuspectsOf {
 public:
  SuspectsOf() = default;
  explicit SuspectsOf(std::map<Key, Suspicion> all) : suspicions_(std::move(all)) {}

  void crashed(const EngineCrashOf<Key>& crash);
  void generated(Key item, const std::string& actor);
  void worked(const std::string& actor);  // it has generated something else
  void forget(Key item);                  // it is discarded

  bool is_isolated(Key item) const;
  bool is_guilty(Key item) const;  // by its last crash
  // The items to be tried alone, those of the fewest crashes first: the others may show that the
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
