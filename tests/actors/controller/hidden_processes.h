// Which processes the controller of a simulated cluster may take for ended although they live: CC-1
// cannot hold for those. A fault may hide a host. While it lasts, the controller may give up what
// lives there, and start others in its place.
//
// Once the fault is over, and the host's agent has introduced itself, the controller knows what
// lives there. From then on only those processes that were there at that moment may still be left
// over, until they have been ended; for others CC-1 holds again.
#pragma once

#include <map>
#include <set>
#include <string>

#include "runtime/base/clock.h"
#include "runtime/node/agent_messages.h"

namespace tandem::controller {

// For so long after a fault a host may be hidden, and a process be left over, at most: until both
// ends have noticed the silence, and the process has been ended.
inline constexpr Duration kLeftOverMax = std::chrono::seconds(30);

class HiddenProcesses {
 public:
  void hide(const std::string& host, Time until);
  // A controller has heard the host's agent; `living`: the processes there.
  void introduced(const std::string& host, Time now, std::set<node::RankId> living);
  bool may_be_left_over(const std::string& host, const node::RankId& rank, Time now) const;
  void forget() { hosts_.clear(); }

 private:
  struct Host {
    Time until{};  // the end of the last fault
    bool known = false;
    std::set<node::RankId> left_over;  // once it is known
  };
  std::map<std::string, Host> hosts_;
};

}  // namespace tandem::controller
