// The conversation of an exchange and the ranks that broadcast weights by NCCL: the learner's rank
// 0, and the rollouts. It has a port of its own in each process, because the learner's own mailbox
// waits while a step is trained.
//
//   exchange -> learner            OpenEpoch, UseEpoch, LeaveEpoch
//   exchange -> rollout            JoinEpoch, LeaveEpoch
//   learner, rollout -> exchange   BroadcastUp, EpochOpened, EpochJoined, EpochInUse, EpochFailed,
//                                  EpochLeft, EpochProgress
//
// A membership epoch is one NCCL communicator; the learner is its rank 0. BroadcastUp comes once,
// first. Each LeaveEpoch is answered by one EpochLeft; whoever owes an answer is asked into no
// epoch (scheduler/fleet/broadcast_group.h).
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "actors/messages/rollout.h"
#include "runtime/wire/fields.h"

namespace tandem::actors {

struct OpenEpoch {
  std::uint64_t epoch = 0;
  std::int32_t size = 0;  // ranks, the learner's included
};
TANDEM_WIRE(OpenEpoch, epoch, size)

struct JoinEpoch {
  std::uint64_t epoch = 0;
  std::string unique_id;  // kNcclUniqueIdBytes bytes, as the learner made them
  std::int32_t rank = 0;  // of the receiver, from 1
  std::int32_t size = 0;
  std::uint64_t layout_hash = 0;  // of the learner's weights
  std::string layout = {};        // as EpochOpened brought it
};
TANDEM_WIRE(JoinEpoch, epoch, unique_id, rank, size, layout_hash, layout)

struct UseEpoch {  // what is published from now on is broadcast in this epoch
  std::uint64_t epoch = 0;
};
TANDEM_WIRE(UseEpoch, epoch)

struct LeaveEpoch {
  std::uint64_t epoch = 0;
  std::string why;
};
TANDEM_WIRE(LeaveEpoch, epoch, why)

using BroadcastInbox = std::variant<OpenEpoch, JoinEpoch, UseEpoch, LeaveEpoch>;

// The rank has NCCL and a GPU, and can be asked into epochs.
struct BroadcastUp {
  Sender from;
  std::int32_t nccl_version = 0;  // 22809 for 2.28.9
};
TANDEM_WIRE(BroadcastUp, from, nccl_version)

inline constexpr std::size_t kLayoutBytesMax = std::size_t{4} << 20;
struct EpochOpened {  // the answer to OpenEpoch
  Sender from;
  std::uint64_t epoch = 0;
  std::string unique_id;
  std::uint64_t layout_hash = 0;
  // WeightsLayout::manifest_json, by which a rank of another layout names the tensor that differs;
  // at most kLayoutBytesMax bytes.
  std::string layout = {};
};
TANDEM_WIRE(EpochOpened, from, epoch, unique_id, layout_hash, layout)

struct EpochJoined {
  Sender from;
  std::uint64_t epoch = 0;
};
TANDEM_WIRE(EpochJoined, from, epoch)

struct EpochInUse {  // the answer to UseEpoch: the broadcasts of earlier epochs have ended
  Sender from;
  std::uint64_t epoch = 0;
};
TANDEM_WIRE(EpochInUse, from, epoch)

struct EpochFailed {  // it ended on this rank by an error; LeaveEpoch is still to come
  Sender from;
  std::uint64_t epoch = 0;
  std::string message;
};
TANDEM_WIRE(EpochFailed, from, epoch, message)

struct EpochLeft {
  Sender from;
  std::uint64_t epoch = 0;
};
TANDEM_WIRE(EpochLeft, from, epoch)

enum class EpochOperationState : std::uint8_t { kQueued, kEntered, kStarted, kDone, kFailed };
TANDEM_WIRE_ENUM(EpochOperationState, kQueued, kEntered, kStarted, kDone, kFailed)

// One operation of NCCL on one rank, for `tandem why`.
struct EpochOperation {
  std::uint64_t sequence = 0;  // in its epoch; 0: the start or the end of the epoch
  std::string label;           // "version 7, bucket 2"
  std::uint64_t bytes = 0;
  EpochOperationState state = EpochOperationState::kQueued;
  std::int64_t since_ms = 0;  // so long it has been under way
};
TANDEM_WIRE(EpochOperation, sequence, label, bytes, state, since_ms)

// Sent about every second while an operation is under way for longer than a second: the newest
// operations of the epoch, oldest first, at most kEpochOperationsMax. Sent once without operations
// when none takes so long any more.
inline constexpr std::size_t kEpochOperationsMax = 8;
struct EpochProgress {
  Sender from;
  std::uint64_t epoch = 0;
  std::vector<EpochOperation> operations;
};
TANDEM_WIRE(EpochProgress, from, epoch, operations)

using BroadcastEvents = std::variant<BroadcastUp, EpochOpened, EpochJoined, EpochInUse, EpochFailed,
                                     EpochLeft, EpochProgress>;

}  // namespace tandem::actors
