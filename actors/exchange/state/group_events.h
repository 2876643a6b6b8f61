// The journal's events about groups: each step of a group's trip from its admission to the
// checkpoint that covers it, and each way back or out. journal_event.h says how events are used.
#pragma once

#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "actors/messages/learner.h"
#include "actors/messages/rollout.h"
#include "runtime/base/ids.h"
#include "runtime/wire/fields.h"
#include "scheduler/fleet/fixed_lag.h"
#include "scheduler/fleet/ledger.h"

namespace tandem::scheduler {

TANDEM_WIRE(Slot, step, index, attempt)
TANDEM_WIRE_ENUM(DiscardReason, kZeroVariance, kRewardFailed, kPromptTooLong, kPoisonPrompt,
                 kJobFinished, kCancelled, kOutsideBounds)
TANDEM_WIRE_ENUM(Refusal, kUnknownGroup, kOldLease, kOverAge)

}  // namespace tandem::scheduler

namespace tandem::exchange {

struct GroupAdmitted {
  GroupId group;
  std::int64_t position = 0;            // the place of the group's prompt in the shuffled sequence
  std::optional<scheduler::Slot> slot;  // under fixed_lag
};
TANDEM_WIRE(GroupAdmitted, group, position, slot)

struct RolloutLeased {
  GroupId group;
  scheduler::LeaseId lease;
  ActorId holder;
  PolicyVersion version;  // the version that the holder generates with
};
TANDEM_WIRE(RolloutLeased, group, lease, holder, version)

struct GroupGenerated {
  ActorId holder;
  messages::GroupHeader header;
};
TANDEM_WIRE(GroupGenerated, holder, header)

struct RewardLeased {
  GroupId group;
  scheduler::LeaseId lease;
  ActorId holder;
};
TANDEM_WIRE(RewardLeased, group, lease, holder)

struct GroupScored {
  GroupId group;
  scheduler::LeaseId lease;
  std::vector<float> rewards;  // one for each trajectory
  bool kept = false;           // although filter_groups is for it: max_num_gen_batches is reached
  std::int64_t failed = 0;     // trajectories whose reward failed and is that of reward.on_failure
};
TANDEM_WIRE(GroupScored, group, lease, rewards, kept, failed)

// Whether no trajectory of the group could be scored.
inline bool failed_whole(const GroupScored& event) {
  return event.failed > 0 && event.failed == std::ssize(event.rewards);
}

struct BatchFormed {
  StepId step;
  std::vector<GroupId> groups;  // in the order of training
};
TANDEM_WIRE(BatchFormed, step, groups)

struct StepTrained {
  StepId step;
  Incarnation learner;
  std::uint64_t checksum = 0;   // the checksum of the weights
  std::vector<GroupId> groups;  // the groups of the batch; empty where the step was repeated
  std::optional<messages::Publication> publication;  // the publication of version step + 1
};
TANDEM_WIRE(StepTrained, step, learner, checksum, groups, publication)

struct LeaseReleased {  // the holder ended
  GroupId group;
  ActorId holder;
};
TANDEM_WIRE(LeaseReleased, group, holder)

// An engine has crashed by a fault of its own, or hung at work on prompts, and these groups are
// suspected of it (scheduler/fleet/suspects.h).
struct EngineCrashed {
  ActorId who;
  std::string cause;            // for people
  std::vector<GroupId> groups;  // that it held
  bool alone = false;           // one group, and no other work
  bool worked = false;          // this incarnation has generated another group before
};
TANDEM_WIRE(EngineCrashed, who, cause, groups, alone, worked)

struct LeaseExpired {
  GroupId group;
};
TANDEM_WIRE(LeaseExpired, group)

struct LeaseAdopted {  // its holder has outlived the exchange that gave the lease, and holds it
  GroupId group;
  scheduler::LeaseId lease;
  ActorId holder;
};
TANDEM_WIRE(LeaseAdopted, group, lease, holder)

struct GroupHandedBack {
  GroupId group;
  scheduler::LeaseId lease;
  ActorId holder;
  std::string message;
};
TANDEM_WIRE(GroupHandedBack, group, lease, holder, message)

struct GroupDiscarded {
  GroupId group;
  scheduler::DiscardReason reason = scheduler::DiscardReason::kZeroVariance;
};
TANDEM_WIRE(GroupDiscarded, group, reason)

struct LiveDiscarded {  // all that live, at the end of the run
  scheduler::DiscardReason reason = scheduler::DiscardReason::kJobFinished;
  std::vector<GroupId> groups;
};
TANDEM_WIRE(LiveDiscarded, reason, groups)

// An answer that came too late. It changes a count and, where the tokens are too old, the group.
enum class RefusedAnswer : std::uint8_t { kGenerated, kScores, kHandBack };
TANDEM_WIRE_ENUM(RefusedAnswer, kGenerated, kScores, kHandBack)
struct AnswerRefused {
  RefusedAnswer answer = RefusedAnswer::kGenerated;
  GroupId group;
  scheduler::LeaseId lease;
  ActorId holder;
  // Set for kGenerated: the oldest version of the group's tokens.
  std::optional<PolicyVersion> oldest;
  scheduler::Refusal refusal = scheduler::Refusal::kOldLease;
};
TANDEM_WIRE(AnswerRefused, answer, group, lease, holder, oldest, refusal)

}  // namespace tandem::exchange
