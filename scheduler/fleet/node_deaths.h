// Nodes and GPUs on which actors keep dying: whether such a place is at fault, and not what runs
// there.
//
// Plain state of one controller, which says which ends are deaths: those by a failure, and not by a
// kill from outside, a decision or the loss of the whole node. Actors that do the same (the same
// role of one job) are compared: where they work elsewhere and die here, the place is at fault.
//
//   ND-1  A place is at fault only after three deaths within ten minutes. Those of one actor are
//         enough for a single GPU, on which no other may ever run; for a node, or for several GPUs,
//         they must be of two actors.
//   ND-2  A death counts only if an actor that does the same works elsewhere, and none of them has
//         died elsewhere within that time. A process that did not start says nothing of GPUs.
//   ND-3  Deaths on GPUs that were found at fault do not count for their node; and the GPUs are
//         cleared if the only actor that has died there dies on others, under the same controller.
#pragma once

#include <compare>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/base/clock.h"

namespace tandem::scheduler {

inline constexpr Duration kNodeDeathsWithin = std::chrono::minutes(10);

// A node, or GPUs of it.
struct DeathPlace {
  std::string node;
  // Their uuids, sorted: all that a rank held. Empty: the node as a whole.
  std::vector<std::string> gpus = {};
  auto operator<=>(const DeathPlace&) const = default;
};

struct NodeDeath {
  DeathPlace place;
  std::string actor;  // "job-1/rollout/0"
  std::string kind;   // of actors that do the same: "job-1/rollout"
  std::string cause;
  Time at;
};

class NodeDeaths {
 public:
  // Whether an actor of the kind works, and not in the place that is asked about.
  using WorksElsewhere = std::function<bool(const std::string& kind)>;

  void died(NodeDeath death);
  // Why the place is at fault, in words that people read; nullopt: nothing says that it is.
  std::optional<std::string> fault_of(const DeathPlace& place, const WorksElsewhere& works) const;
  void found_at_fault(const DeathPlace& place);  // it is cordoned for that
  // The GPUs that were found at fault and are cleared, since `actor` has died in `place`.
  std::vector<DeathPlace> cleared_by(const std::string& actor, const DeathPlace& place) const;
  void forget(const DeathPlace& place);  // what died there: it has no mark any more

 private:
  void drop_first();
  void uncount(const NodeDeath& death);

  std::deque<NodeDeath> deaths_;  // the newest ones, within the time before the last of them
  // How many of them are of a kind in a place.
  std::map<std::string, std::map<DeathPlace, std::int32_t>> by_kind_;
  std::map<DeathPlace, std::set<std::string>> at_fault_;  // and all actors that have died there
};

}  // namespace tandem::scheduler
