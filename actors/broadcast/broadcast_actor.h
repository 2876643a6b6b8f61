// The actor by which a rank takes part in the broadcasts of its job's weights: it hands the
// exchange's orders to the rank's BroadcastRank and tells the exchange what came of them. One in
// the learner's rank 0 and one in each rollout of a job with `weight_broadcast.type: nccl`. It
// decides nothing (scheduler/fleet/broadcast_group.h does) and moves no byte
// (runtime/weights/broadcast.h does).
//
// Invariants
//   BA-1  Events reach the exchange in the order in which they happened; none is lost.
//   BA-2  It never waits for a broadcast: an order is handled whatever NCCL is at.
#pragma once

#include <memory>
#include <variant>

#include "actors/messages/broadcast.h"
#include "runtime/actor/actor.h"
#include "runtime/actor/context.h"
#include "runtime/actor/outbox.h"
#include "runtime/collective/nccl_records.h"
#include "runtime/weights/broadcast.h"

namespace tandem::actors {

struct StartBroadcast {};  // sent once, first

struct BroadcastActorConfig {
  Sender self;
  int nccl_version = 0;
  std::uint64_t layout_hash = 0;
  Duration progress_interval = std::chrono::seconds(1);
  Duration retry_interval = std::chrono::milliseconds(50);  // of messages that were refused
};

}  // namespace tandem::actors
