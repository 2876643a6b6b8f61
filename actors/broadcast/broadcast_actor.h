// The actor by which a rank takes part in the broadcasts of its job's weights: it hands the
// exchange's orders to the rank's BroadcastRank and tells the exchange what came of them. One in
// the learner's rank 0 and one in each rollout of a job with `weight_broadcast.type: nccl`. It
// decides nothing (scheduler/fleet/broadcast_group.h does) and moves no byte
// (runtime/weights/broadcast.h does).
//
// The actor checks the fields of every order. It answers an order that makes no sense by
// EpochFailed and does not pass it on to the BroadcastRank.
//
// Invariants (tests/actors/broadcast/broadcast_actor_test.cc)
//   BA-1  Events reach the exchange in the order in which they happened; none of its own epochs is
//         lost.
//   BA-2  It never waits for a broadcast: an order is handled whatever NCCL is at.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "actors/messages/broadcast.h"
#include "runtime/actor/actor.h"
#include "runtime/actor/context.h"
#include "runtime/collective/nccl_records.h"
#include "runtime/link/outbox.h"
#include "runtime/weights/weights_config.h"

namespace tandem::broadcast {

struct StartBroadcast {};  // sent once, first
// Another exchange follows the one that has died: the rank leaves the epochs of that one, of which
// the next is not told, and then says that it is up.
struct MeetAgain {};

// These values are fixed for the actor's incarnation. `layout` describes the arena that is
// broadcast; a rank whose arena has another layout cannot join.
struct BroadcastActorConfig {
  ActorId self;
  bool leads = false;  // the learner's rank 0, which opens epochs; the others join them
  int nccl_version = 0;
  weights::WeightsLayout layout = {};
  std::string communicator = {};  // Broadcasting::name, by which the epochs' records are known
  Duration progress_interval = std::chrono::seconds(1);
  // The pause before a refused message is sent again.
  Duration retry_interval = std::chrono::milliseconds(50);
};

// Handlers run in the actor's turns. Orders that fail a check are answered by EpochFailed;
// everything else is the answer of the BroadcastRank, told as an event.
class BroadcastActor {
 public:
  using Inbox = std::variant<StartBroadcast, MeetAgain, messages::OpenEpoch, messages::JoinEpoch,
                             messages::UseEpoch, messages::LeaveEpoch>;

  // `rank` is shared with the rank's publisher or subscriber, because either actor may be the last
  // to end. `records` has the operations of all communicators of the process.
  BroadcastActor(BroadcastActorConfig config, std::shared_ptr<weights::BroadcastRank> rank,
                 std::shared_ptr<const collective::NcclRecords> records,
                 actor::Ref<messages::BroadcastEvents> exchange);

  void handle(actor::Context& cx, StartBroadcast start);
  void handle(actor::Context& cx, MeetAgain again);
  void handle(actor::Context& cx, messages::OpenEpoch order);
  void handle(actor::Context& cx, messages::JoinEpoch order);
  void handle(actor::Context& cx, messages::UseEpoch order);
  void handle(actor::Context& cx, messages::LeaveEpoch order);

 private:
  struct Epoch {                 // an epoch that this rank was asked into and has not left
    bool told_progress = false;  // the last EpochProgress had an operation that was late
    // It began before another exchange was met: what happens in it is told to nobody but, where the
    // current exchange asks this rank to leave it, that it has left.
    bool of_former = false;
    bool answer_owed = false;  // it was asked to leave
  };

  // Says that this rank is up, once it is out of the epochs of exchanges that have died.
  void say_up(actor::Context& cx);
  // Sends all events that the BroadcastRank has, in their order (BA-1).
  void tell_events(actor::Context& cx);
  void tell(actor::Context& cx, weights::BroadcastEvent event);
  // Answers an order by EpochFailed, behind the events that came before the order.
  void refuse(actor::Context& cx, std::uint64_t epoch, const std::string& why);
  // Every progress_interval: reports the epochs that have a late operation, and then once more when
  // none is late any longer.
  void watch(actor::Context& cx);
  void tell_progress(actor::Context& cx, std::uint64_t number, Epoch& epoch);
  std::vector<messages::EpochOperation> operations_of(std::uint64_t epoch, Time now) const;

  const BroadcastActorConfig config_;
  const std::shared_ptr<weights::BroadcastRank> rank_;
  const std::shared_ptr<const collective::NcclRecords> records_;
  std::map<std::uint64_t, Epoch> epochs_;
  bool up_is_due_ = false;
  link::OutboxTo<messages::BroadcastEvents> outbox_;
};

static_assert(actor::Actor<BroadcastActor>);

}  // namespace tandem::broadcast
