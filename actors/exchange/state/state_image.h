// A copy of a run's facts that can be compared and encoded, without deadlines. Two states are the
// same state when their images are equal; DurableState::hash() is the hash of the image.
//
// An image is flat on purpose: the ledger's indexes and histograms follow from its records, so that
// they are not in it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/exchange/state/run_facts.h"

namespace tandem::scheduler {

TANDEM_WIRE_ENUM(GroupState, kAdmitted, kRolling, kGenerated, kScoring, kScored, kTraining,
                 kTrained, kDurable, kDiscarded)

}  // namespace tandem::scheduler

namespace tandem::exchange {

struct LeaseImage {
  scheduler::LeaseId id;
  Incarnation holder;
  Epoch epoch;
};
TANDEM_WIRE(LeaseImage, id, holder, epoch)

struct GroupImage {
  GroupId id;
  scheduler::GroupState state = scheduler::GroupState::kAdmitted;
  std::optional<StepId> due, step;
  std::optional<LeaseImage> lease;
  std::int64_t position = 0;
  std::optional<scheduler::Slot> slot;
  std::optional<messages::GroupHeader> header;
  std::vector<float> rewards;
  std::int64_t failed = 0;
};
TANDEM_WIRE(GroupImage, id, state, due, step, lease, position, slot, header, rewards, failed)

struct BatchImage {
  StepId step;
  std::vector<GroupId> groups;
};
TANDEM_WIRE(BatchImage, step, groups)

struct LedgerImage {
  std::int64_t issued = 0, trained = 0, live = 0, durable = 0, retrained = 0;
  std::vector<std::int64_t> discarded, refused;  // by reason, by refusal
  GroupId next_group;
  scheduler::LeaseId next_lease;
  StepId next_step, next_commit, replay_next;
  PolicyVersion published;
  std::int64_t discarded_since_publish = 0;
  Incarnation learner;
  std::vector<BatchImage> batches;
};
TANDEM_WIRE(LedgerImage, issued, trained, live, durable, retrained, discarded, refused, next_group,
            next_lease, next_step, next_commit, replay_next, published, discarded_since_publish,
            learner, batches)

struct SlotImage {  // a cell of fixed_lag's rows
  StepId step;
  std::int32_t index = 0, attempt = 0;
  std::optional<GroupId> group;
  bool scored = false;
};
TANDEM_WIRE(SlotImage, step, index, attempt, group, scored)

struct WorkerImage {
  messages::Role role = messages::Role::kRollout;
  ActorId who;
  std::int64_t capacity = 0;
  std::optional<PolicyVersion> installed;
  bool draining = false;
};
TANDEM_WIRE(WorkerImage, role, who, capacity, installed, draining)

struct ChecksumImage {  // the checksum of the weights of a step's end, or of a published version
  std::int64_t version = 0;
  std::uint64_t checksum = 0;
};
TANDEM_WIRE(ChecksumImage, version, checksum)

struct LearnerImage {
  std::optional<ActorId> who;
  std::optional<LearnerTask> owed;
  std::optional<StepId> training, checkpoint_awaited;
  StepId durable;
  std::vector<ChecksumImage> checksums;
};
TANDEM_WIRE(LearnerImage, who, owed, training, checkpoint_awaited, durable, checksums)

struct VersionImage {
  PolicyVersion published, oldest_retained;
  std::vector<PolicyVersion> offered;
  std::vector<ChecksumImage> checksums;
};
TANDEM_WIRE(VersionImage, published, oldest_retained, offered, checksums)

struct EvaluationsImage {
  std::vector<EvaluationBegan> running;
  messages::EvaluationId last;
  std::vector<EvaluationKind> once;
};
TANDEM_WIRE(EvaluationsImage, running, last, once)

struct SuspicionImage {
  GroupId group;
  std::int32_t crashes = 0, alone = 0;
  bool last_alone = false, others_work = false;
  std::string actor;
  bool operator==(const SuspicionImage&) const = default;
};
TANDEM_WIRE(SuspicionImage, group, crashes, alone, last_alone, others_work, actor)

// Facts that runs of earlier versions do not have. They are hashed only where there are any, so
// that the hashes of earlier journals stay as they are.
struct LaterImage {
  std::vector<SuspicionImage> suspects;
  std::vector<std::int64_t> poisoned;
  std::optional<StepId> batches_kept;
  bool operator==(const LaterImage&) const = default;
};
TANDEM_WIRE(LaterImage, suspects, poisoned, batches_kept)

// Facts that came after those of LaterImage; hashed only where there are any.
struct BroadcastImage {
  std::uint64_t epoch = 0;
  bool operator==(const BroadcastImage&) const = default;
};
TANDEM_WIRE(BroadcastImage, epoch)

struct StateImage {
  RunBegan began;
  RunStage stage = RunStage::kStarting;
  bool resumed = false;
  LedgerImage ledger;
  std::vector<GroupImage> groups;
  std::optional<StepId> fixed_first;  // under fixed_lag, as are:
  std::vector<SlotImage> fixed_slots;
  std::int64_t position_next = 0, generated_for_step = 0, reward_failures = 0;
  std::vector<WorkerImage> workers;
  std::vector<ActorId> ended;
  LearnerImage learner;
  VersionImage versions;
  EvaluationsImage evaluations;
  std::optional<EndAsked> end;
  std::optional<StepId> last_save;
};
TANDEM_WIRE(StateImage, began, stage, resumed, ledger, groups, fixed_first, fixed_slots,
            position_next, generated_for_step, reward_failures, workers, ended, learner, versions,
            evaluations, end, last_save)

StateImage image_of(const RunFacts& facts);
LaterImage later_image_of(const RunFacts& facts);
BroadcastImage broadcast_image_of(const RunFacts& facts);
// Whether this version knows all that the image counts.
bool can_be_restored(const StateImage& image);
// The facts of which these are the images, without deadlines. The images are of some facts, and can
// be restored; what could not be is CHECKed in part.
RunFacts facts_of(const StateImage& image, const LaterImage& later,
                  const BroadcastImage& broadcasts);
std::uint64_t hash_of(const StateImage& image, const LaterImage& later = {},
                      const BroadcastImage& broadcasts = {});  // checksum64

}  // namespace tandem::exchange
