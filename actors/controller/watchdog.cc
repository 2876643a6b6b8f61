#include "actors/controller/watchdog.h"

#include <algorithm>
#include <utility>

#include "actors/controller/durable.h"
#include "actors/messages/roles.h"
#include "runtime/base/log.h"
#include "scheduler/fleet/hang_timeout.h"

namespace tandem::controller {

namespace {

// Beyond it, hangs are counted anew: jobs come and go for as long as a controller lives.
constexpr std::size_t kHangsKept = 4096;

std::string role_of(const std::string& actor) { return actor.substr(0, actor.rfind('/')); }

}  // namespace

Watchdog::Watchdog(Peers peers, actor::Ref<Controller::Inbox> controller)
    : peers_(std::move(peers)), controller_(std::move(controller)) {}

// An incarnation that is over may have a link a little longer than the next one is up.
void Watchdog::note_work(const link::PeerStatus& peer, Time hung_at) {
  const Incarnation incarnation = peer.peer.incarnation;
  const auto [known, is_new] = work_.try_emplace(peer.hello.opaque);
  WatchedWork& work = known->second;
  if (!is_new && (incarnation < work.incarnation ||
                  (incarnation == work.incarnation && hung_at >= work.hung_at)))
    return;
  work = {.incarnation = incarnation, .phase = peer.progress.phase, .hung_at = hung_at};
}

// A load that begins and ends between two looks is not seen, and says nothing.
void Watchdog::note_load(const link::PeerStatus& peer, Time now) {
  const link::ProgressReport& progress = peer.progress;
  const auto known = loading_.find(peer.peer.name);
  if (known != loading_.end()) {
    const Load& load = known->second;
    const bool same = load.incarnation == peer.peer.incarnation;
    if (same && load.phase != progress.phase) {
      Duration& longest = loads_[{role_of(peer.hello.opaque), load.phase}];
      longest = std::max(longest, load.taken + kWatchEvery);
    }
    if (!same || load.phase != progress.phase) loading_.erase(known);
  }
  if (scheduler::happens_once(progress.phase))
    loading_[peer.peer.name] = {.incarnation = peer.peer.incarnation,
                                .phase = progress.phase,
                                .taken = std::max(Duration{}, now - progress.since)};
}

void Watchdog::look_at(const link::PeerStatus& peer, Time now) {
  note_load(peer, now);
  const link::ProgressReport& progress = peer.progress;
  if (!scheduler::hang_timeout(progress.phase)) return;  // HT-1
  scheduler::PhaseHistory history{.pieces = progress.pieces, .longest = progress.longest};
  const Kind kind{role_of(peer.hello.opaque), progress.phase};
  if (const auto load = loads_.find(kind); load != loads_.end())
    history = {.pieces = scheduler::kPiecesKnown, .longest = load->second};
  const auto hung_before = hangs_.find(kind);
  const int hangs = hung_before == hangs_.end() ? 0 : hung_before->second;
  const auto known = told_.find(peer.peer.name);
  const bool told = known != told_.end() && known->second == peer.peer.incarnation;
  history.hangs = told ? hangs - 1 : hangs;  // its own hang changes no deadline of its own
  const Duration allowed = *scheduler::hang_deadline(progress.phase, history);
  // A peer may tell any number.
  note_work(peer, now + (allowed - std::clamp(progress.still, Duration{}, allowed)));
  if (!scheduler::is_hung(progress.phase, progress.still, history)) return;
  if (!told) {
    ++hangs_[kind];
    told_[peer.peer.name] = peer.peer.incarnation;
    log::warn("event=rank_hung peer={} phase={} still_s={:.1f} longest_s={:.3f} pieces={}",
              to_string(peer.peer), progress.phase, seconds(progress.still),
              seconds(progress.longest), progress.pieces);
  }
  (void)controller_.tell(RankHung{.id = {peer.hello.opaque, peer.peer.incarnation, peer.hello.rank},
                                  .silent_s = seconds(progress.still),
                                  .phase = progress.phase,
                                  .longest_s = seconds(progress.longest)});
}

void Watchdog::handle(actor::Context& cx, WatchNow) {
  const std::size_t kept = std::max({hangs_.size(), told_.size(), loads_.size(), loading_.size()});
  if (kept > kHangsKept) {
    hangs_.clear();
    told_.clear();
    loads_.clear();
    loading_.clear();
  }
  work_.clear();
  for (const link::PeerStatus& peer : peers_())
    // What is not heard makes progress unseen, and is still no longer than it has told.
    if (!peer.silent && !messages::is_node_peer(peer.peer.name)) look_at(peer, cx.now());
  cx.after(kWatchEvery, [this](actor::Context& then) { handle(then, WatchNow{}); });
}

void Watchdog::handle(actor::Context&, actor::Ask<GetWork> ask) {
  if (ask.question.job.empty()) return ask.reply(work_);
  const auto [from, behind] = names_below(ask.question.job);
  ask.reply(WorkByActor(work_.lower_bound(from), work_.lower_bound(behind)));
}

}  // namespace tandem::controller
