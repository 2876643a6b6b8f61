// The journal's events about the learner: its weights, their versions, broadcasts and checkpoints.
// journal_event.h says how events are used.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "actors/messages/learner.h"
#include "runtime/base/ids.h"
#include "runtime/wire/fields.h"
#include "scheduler/fleet/ledger.h"

namespace tandem::exchange {

struct LearnerCameUp {
  ActorId who;
  std::optional<StepId> checkpoint;
  std::vector<PolicyVersion> offered;  // by its publisher
};
TANDEM_WIRE(LearnerCameUp, who, checkpoint, offered)

// A learner that came back trains the batches since its checkpoint again.
struct LearnerRestarted {
  ActorId who;
  StepId checkpoint;
  std::int64_t batches = 0;  // to train again
};
TANDEM_WIRE(LearnerRestarted, who, checkpoint, batches)

// A repeated step did not give the weights that it gave before. The run goes on with those of now,
// a new lineage: what is generated stays, since its tokens tell who sampled them.
struct LineageBegan {
  ActorId who;
  StepId step;
  std::uint64_t before = 0, now = 0;  // the checksums
};
TANDEM_WIRE(LineageBegan, who, step, before, now)

enum class LearnerTask : std::uint8_t { kPublish, kWarmStart, kTrain };
TANDEM_WIRE_ENUM(LearnerTask, kPublish, kWarmStart, kTrain)
struct LearnerAsked {  // it owes the answer
  LearnerTask task = LearnerTask::kPublish;
  std::optional<StepId> step;  // set for kTrain
};
TANDEM_WIRE(LearnerAsked, task, step)

// A version outside a step: the answer to PublishInitial or WarmStart.
struct VersionPublished {
  ActorId who;
  messages::Publication publication;
  std::optional<std::int32_t> warm_start_steps;  // set: the answer to WarmStart
};
TANDEM_WIRE(VersionPublished, who, publication, warm_start_steps)

// The learner has published versions again that its publisher had lost; the newest one is that of
// the learner's step.
struct VersionsRestored {
  ActorId who;
  messages::Publication publication;
};
TANDEM_WIRE(VersionsRestored, who, publication)

// A rollout found that the bytes of this version are not those that were published.
struct VersionWithdrawn {
  ActorId by;
  PolicyVersion version;
};
TANDEM_WIRE(VersionWithdrawn, by, version)

struct CommitRefused {
  StepId step;
  Incarnation learner;
  scheduler::Refusal refusal = scheduler::Refusal::kOldLease;
};
TANDEM_WIRE(CommitRefused, step, learner, refusal)

struct CheckpointAsked {
  StepId step;
};
TANDEM_WIRE(CheckpointAsked, step)

// The checkpoint that follows forgets batches of the steps below `from` alone. The others are
// trained again where that checkpoint turns out to be damaged, from the one before it. Without this
// event a checkpoint forgets every batch that it covers.
struct BatchesKept {
  StepId from;
};
TANDEM_WIRE(BatchesKept, from)

struct CheckpointKept {
  StepId step;
  std::string directory, weights_sha256;
};
TANDEM_WIRE(CheckpointKept, step, directory, weights_sha256)

// An epoch of broadcasts (scheduler/fleet/broadcast_group.h) is opened. The numbers ascend, also
// under exchanges that follow, since ranks that were in earlier epochs may live.
struct BroadcastEpochOpened {
  std::uint64_t epoch = 0;
};
TANDEM_WIRE(BroadcastEpochOpened, epoch)

}  // namespace tandem::exchange
