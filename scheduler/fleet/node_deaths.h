// Nodes on which actors keep dying: whether a node is at fault, and not what runs on it.
//
// Plain state of one controller, which says which ends are deaths: those by a failure, and not by a
// kill from outside, a decision or the loss of the whole node. Actors that do the same (the same
// role of one job) are compared: where they work elsewhere and die here, the node is at fault.
//
//   ND-1  A node is at fault only after three deaths of at least two actors within ten minutes.
//   ND-2  A death counts only if an actor that does the same works on another node, and none of
//         them has died elsewhere within that time.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "runtime/base/clock.h"

namespace tandem::scheduler {

inline constexpr Duration kNodeDeathsWithin = std::chrono::minutes(10);

struct NodeDeath {
  std::string node;
  std::string actor;  // "job-1/rollout/0"
  std::string kind;   // of actors that do the same: "job-1/rollout"
  std::string cause;
  Time at;
};

class NodeDeaths {
 public:
  // Whether an actor of the kind works on another node than this one.
  using WorksElsewhere = std::function<bool(const std::string& kind, const std::string& node)>;

  void died(NodeDeath death);
  // Why the node is at fault, in words that people read; nullopt: nothing says that it is.
  std::optional<std::string> fault_of(const std::string& node, const WorksElsewhere& works) const;
  void forget(const std::string& node);  // somebody has looked after it

 private:
  void drop_first();
  void uncount(const NodeDeath& death);

  std::deque<NodeDeath> deaths_;  // the newest ones, within the time before the last of them
  // How many of them are of a kind on a node.
  std::map<std::string, std::map<std::string, std::int32_t>> by_kind_;
};

}  // namespace tandem::scheduler
