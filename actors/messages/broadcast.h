// The messages between an exchange and the ranks that broadcast weights by NCCL, which are rank 0
// of the learner and the rollouts. These messages have a port of their own in each process, because
// the learner's own mailbox waits while a step is trained.
//
//   exchange -> learner            OpenEpoch, UseEpoch, LeaveEpoch
//   exchange -> rollout            JoinEpoch, LeaveEpoch
//   learner, rollout -> exchange   BroadcastUp, EpochOpened, EpochJoined, EpochInUse, EpochFailed,
//                                  EpochLeft, EpochProgress
//
// A membership epoch is one NCCL communicator with a fixed set of ranks; the learner is its rank 0.
// BroadcastUp is the first message of a rank that counts for an exchange; before it the rank may
// still say something of the epochs of a former one. Each LeaveEpoch is answered by one EpochLeft,
// and a rank that still owes this answer is asked into no other epoch
// (scheduler/fleet/broadcast_group.h).
//
// An epoch that succeeds goes through OpenEpoch, EpochOpened, JoinEpoch to each rollout,
// EpochJoined from each rank, UseEpoch, EpochInUse. At any point EpochFailed may come instead, and
// LeaveEpoch ends the epoch on a rank.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "actors/messages/rollout.h"
#include "runtime/wire/fields.h"

namespace tandem::messages {

// Makes the learner create an epoch: a new NCCL id, which EpochOpened brings to the exchange.
struct OpenEpoch {
  std::uint64_t epoch = 0;
  std::int32_t size = 0;  // ranks, the learner's included
};
TANDEM_WIRE(OpenEpoch, epoch, size)

// Makes a rollout join an epoch that the learner has opened.
struct JoinEpoch {
  std::uint64_t epoch = 0;
  std::string unique_id;  // kNcclUniqueIdBytes bytes, as the learner made them
  std::int32_t rank = 0;  // the receiver's rank, from 1; the learner is rank 0
  std::int32_t size = 0;  // as OpenEpoch's
  // The layout of the learner's weights. A receiver with another layout refuses to join.
  std::uint64_t layout_hash = 0;
  std::string layout = {};  // as EpochOpened brought it
};
TANDEM_WIRE(JoinEpoch, epoch, unique_id, rank, size, layout_hash, layout)

// From this message on the learner broadcasts every version that it publishes in this epoch.
struct UseEpoch {
  std::uint64_t epoch = 0;
};
TANDEM_WIRE(UseEpoch, epoch)

// Ends the epoch on the receiver, whatever state the epoch is in there.
struct LeaveEpoch {
  std::uint64_t epoch = 0;
  std::string why;  // in words, for logs and errors
};
TANDEM_WIRE(LeaveEpoch, epoch, why)

// Every message that a broadcasting rank can get.
using BroadcastInbox = std::variant<OpenEpoch, JoinEpoch, UseEpoch, LeaveEpoch>;

// The rank has NCCL and a GPU, and can be asked into epochs. It is in none of which it has heard:
// it has left those of a former exchange.
struct BroadcastUp {
  ActorId from;
  std::int32_t nccl_version = 0;  // 22809 for 2.28.9
};
TANDEM_WIRE(BroadcastUp, from, nccl_version)

// The controller's door ends the link of a learner whose EpochOpened has a longer layout.
inline constexpr std::size_t kLayoutBytesMax = std::size_t{4} << 20;

// The answer to OpenEpoch: all that other ranks need to join.
struct EpochOpened {
  ActorId from;
  std::uint64_t epoch = 0;
  std::string unique_id;
  std::uint64_t layout_hash = 0;
  // WeightsLayout::manifest_json. A rank that has another layout finds in it the tensor that
  // differs, for its error. It has at most kLayoutBytesMax bytes.
  std::string layout = {};
};
TANDEM_WIRE(EpochOpened, from, epoch, unique_id, layout_hash, layout)

// The communicator has started on this rank, so all ranks of the epoch are there. The learner sends
// this message as well.
struct EpochJoined {
  ActorId from;
  std::uint64_t epoch = 0;
};
TANDEM_WIRE(EpochJoined, from, epoch)

// The answer to UseEpoch. The broadcasts of earlier epochs have ended by then.
struct EpochInUse {
  ActorId from;
  std::uint64_t epoch = 0;
};
TANDEM_WIRE(EpochInUse, from, epoch)

// The epoch ended on this rank by an error, or the rank refused the order. LeaveEpoch still
// follows.
struct EpochFailed {
  ActorId from;
  std::uint64_t epoch = 0;
  std::string message;
};
TANDEM_WIRE(EpochFailed, from, epoch, message)

// The answer to LeaveEpoch: no call of NCCL for this epoch is under way on this rank any more.
struct EpochLeft {
  ActorId from;
  std::uint64_t epoch = 0;
};
TANDEM_WIRE(EpochLeft, from, epoch)

// Queued: handed to the thread of NCCL. Entered: this rank has called NCCL. Started: the GPU's
// stream has come to the operation.
enum class EpochOperationState : std::uint8_t { kQueued, kEntered, kStarted, kDone, kFailed };
TANDEM_WIRE_ENUM(EpochOperationState, kQueued, kEntered, kStarted, kDone, kFailed)

// One operation of NCCL on one rank, for `tandem why`.
struct EpochOperation {
  // The operation's number in its epoch; 0 is the start or the end of the epoch.
  std::uint64_t sequence = 0;
  std::string label;  // "version 7, bucket 2"
  std::uint64_t bytes = 0;
  EpochOperationState state = EpochOperationState::kQueued;
  std::int64_t since_ms = 0;  // how long the operation has been under way
};
TANDEM_WIRE(EpochOperation, sequence, label, bytes, state, since_ms)

// Sent about every second while an operation has been under way for longer than a second. Lists the
// newest operations of the epoch, oldest first, at most kEpochOperationsMax. Once no operation
// takes so long any more, one last message has an empty list.
inline constexpr std::size_t kEpochOperationsMax = 8;
struct EpochProgress {
  ActorId from;
  std::uint64_t epoch = 0;
  std::vector<EpochOperation> operations;
};
TANDEM_WIRE(EpochProgress, from, epoch, operations)

// Every message that the exchange can get from a broadcasting rank.
using BroadcastEvents = std::variant<BroadcastUp, EpochOpened, EpochJoined, EpochInUse, EpochFailed,
                                     EpochLeft, EpochProgress>;

}  // namespace tandem::messages
