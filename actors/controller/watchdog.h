// Looks at the heartbeats of all ranks. A rank that is at work and has made no progress for as long
// as its phase may take (scheduler/fleet/hang_timeout.h) is hung, even if its socket threads are
// alive, and the controller hears of it. A heartbeat has all that the rule asks for but the hangs
// so far, and what a load has taken in other processes: these the watchdog remembers. Agents are
// not watched: a silent agent loses its link. Views ask when each actor at work would count as
// hung.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "actors/controller/controller.h"
#include "runtime/actor/actor.h"
#include "runtime/actor/context.h"
#include "runtime/actor/ref.h"
#include "runtime/link/link.h"

namespace tandem::controller {

inline constexpr Duration kWatchEvery = std::chrono::milliseconds(500);

struct WatchNow {};  // the first look; the others follow until the system ends

// The work of an actor at the newest look. Of several ranks it is the one that would be hung first.
struct WatchedWork {
  Incarnation incarnation;
  std::string phase;
  Time hung_at;  // unless the process makes progress before
};
using WorkByActor = std::map<std::string, WatchedWork>;  // idle actors have none
struct GetWork {
  using Reply = WorkByActor;
  std::string job = {};  // empty: of all jobs
};

class Watchdog {
 public:
  using Inbox = std::variant<WatchNow, actor::Ask<GetWork>>;
  using Peers = std::function<std::vector<link::PeerStatus>()>;
  Watchdog(Peers peers, actor::Ref<Controller::Inbox> controller);

  void handle(actor::Context& cx, WatchNow);
  void handle(actor::Context& cx, actor::Ask<GetWork> ask);

 private:
  void look_at(const link::PeerStatus& peer, Time now);
  void note_load(const link::PeerStatus& peer, Time now);
  void note_work(const link::PeerStatus& peer, Time hung_at);

  using Kind = std::pair<std::string, std::string>;  // a role of a job, and a phase
  struct Load {                                      // of one process, as far as it was seen
    Incarnation incarnation;
    std::string phase;
    Duration taken{};
  };

  const Peers peers_;
  const actor::Ref<Controller::Inbox> controller_;
  std::map<Kind, int> hangs_;
  std::map<Kind, Duration> loads_;           // the longest that have ended
  std::map<std::string, Load> loading_;      // by peer, while it goes on
  std::map<std::string, Incarnation> told_;  // peers that were found hung, which is told again
  WorkByActor work_;                         // at the newest look
};
static_assert(actor::Actor<Watchdog>);

}  // namespace tandem::controller
