#include "actors/controller/watchdog.h"

#include <utility>

#include "actors/messages/roles.h"
#include "runtime/base/log.h"
#include "scheduler/fleet/hang_timeout.h"

namespace tandem::controller {

Watchdog::Watchdog(Peers peers, actor::Ref<Controller::Inbox> controller)
    : peers_(std::move(peers)), controller_(std::move(controller)) {}

void Watchdog::handle(actor::Context& cx, WatchNow) {
  for (const link::PeerStatus& peer : peers_()) {
    if (peer.silent) continue;  // what is not heard makes progress unseen
    const Duration silent = cx.now() - peer.progress_changed;
    const std::string& phase = peer.progress.phase;
    if (messages::is_node_peer(peer.peer.name) || !scheduler::is_hung(phase, silent)) continue;
    log::warn("event=rank_hung peer={} phase={}", to_string(peer.peer), phase);
    const node::RankId rank{peer.hello.opaque, peer.peer.incarnation, peer.hello.rank};
    (void)controller_.tell(RankHung{rank, seconds(silent)});
  }
  cx.after(kWatchEvery, [this](actor::Context& then) { handle(then, WatchNow{}); });
}

}  // namespace tandem::controller
