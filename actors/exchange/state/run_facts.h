// The facts of a run that its exchange decides on and that its journal restores: groups, workers,
// the learner, versions, evaluations and the run's end, a struct for each. Plain data, which
// DurableState (durable_state.h) alone changes; the exchange's parts read it.
//
// Not here: times, progress, statistics and texts for people, which a replay cannot know
// (observed.h).
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/exchange/state/held_payloads.h"
#include "actors/exchange/state/job_events.h"
#include "runtime/base/clock.h"
#include "scheduler/fleet/fixed_lag.h"
#include "scheduler/fleet/ledger.h"
#include "scheduler/fleet/suspects.h"
#include "scheduler/fleet/version_supply.h"

namespace tandem::exchange {

// The deadline of a lease that nobody has given one: no event tells deadlines.
inline constexpr Time kNoDeadline{std::numeric_limits<std::int64_t>::max()};

// A live group, or one that is trained and not yet durable; besides the ledger's record of it.
struct GroupFacts {
  std::int64_t position = 0;            // the place of the group's prompt in the shuffled sequence
  std::optional<scheduler::Slot> slot;  // under fixed_lag
  std::optional<messages::GroupHeader> header;  // once generated
  std::vector<float> rewards;                   // once scored, one for each trajectory
  std::int64_t failed = 0;                      // as GroupScored's
};

// Groups, from the next prompt to the checkpoint that covers them.
struct GroupFlow {
  scheduler::Ledger ledger{scheduler::Budget{}};
  std::optional<scheduler::FixedLag> fixed;  // set under fixed_lag
  std::map<GroupId, GroupFacts> entries;
  HeldPayloads held;                // those that the entries' headers name
  std::set<std::int64_t> poisoned;  // positions of the groups that were found guilty of crashes
  scheduler::Suspects suspects;     // among the groups that are to be generated
  std::int64_t position_next = 0;
  std::int64_t generated_for_step = 0;  // groups since the last batch was formed (filter_groups)
  std::int64_t reward_failures = 0;     // groups in a row
};

// An actor that is up, of a role that works under leases.
struct WorkerFacts {
  messages::Role role;
  ActorId who;
  std::int64_t capacity = 0;               // trajectories (rollout) or groups (others)
  std::optional<PolicyVersion> installed;  // set for a rollout
  bool draining = false;
};

using WorkersOfRole = std::map<std::string, WorkerFacts>;  // by actor

// The actors that are up and work under leases of the exchange, by role.
struct WorkersFacts {
  std::map<messages::Role, WorkersOfRole> by_role;
  const WorkersOfRole& of(const messages::Role& role) const;  // empty where none is up
  const WorkersOfRole& rollouts() const { return of(messages::Role::kRollout); }
  // Those of all roles, in the order of kTrainingRoles and of their names.
  std::vector<const WorkerFacts*> all() const;
  // The worker that is up as this incarnation, of any role or of that one; null if there is none.
  const WorkerFacts* find(const ActorId& who) const;
  const WorkerFacts* find(const messages::Role& role, const ActorId& who) const;
  // The newest incarnation of each actor, of any role, that has ended (EX-6).
  std::map<std::string, Incarnation> ended;
};

struct LearnerFacts {
  std::optional<ActorId> who;          // while it is up
  std::optional<LearnerTask> owed;     // the answer that it owes
  std::optional<StepId> training;      // the step that it was sent and has not committed
  StepId durable;                      // the newest checkpoint covers the steps below it
  std::optional<StepId> batches_kept;  // from this step on; none: from `durable` on
  StepId batches_from() const { return batches_kept.value_or(durable); }
  std::optional<StepId> checkpoint_awaited;   // EX-2
  std::map<StepId, std::uint64_t> checksums;  // checksums of the weights since that checkpoint
};

// Versions, as the learner published them.
struct VersionFacts {
  // The newest version, and the oldest that is retained or can be had again.
  PolicyVersion published{-2}, oldest_retained{-2};
  std::set<PolicyVersion> offered;  // by the publisher
  // The checksums of the retained versions, and of some before them.
  std::map<PolicyVersion, std::uint64_t> checksums;
};

struct EvaluationFacts {
  struct Running {
    EvaluationKind kind = EvaluationKind::kPeriodic;
    PolicyVersion version;
  };
  std::map<messages::EvaluationId, Running> running;
  messages::EvaluationId last;    // the newest id
  std::set<EvaluationKind> once;  // kinds of which a run has one, and which began
};

struct EndFacts {
  std::optional<EndAsked> asked;
  std::optional<StepId> last_save;  // EX-5: the checkpoint that is waited for
  std::optional<RunEnded> ended;    // in no image: none is made after the end
};

struct RunFacts {
  // Where versions can be had, with the learner as it stands.
  scheduler::SupplyState supply() const;

  RunBegan began;  // the settings that events depend on
  RunStage stage = RunStage::kStarting;
  bool resumed = false;  // RunResumed has come
  GroupFlow flow;
  WorkersFacts workers;
  LearnerFacts learner;
  VersionFacts versions;
  EvaluationFacts evaluations;
  EndFacts end;
  std::uint64_t broadcast_epoch = 0;  // the newest epoch of broadcasts; 0: there was none
};

}  // namespace tandem::exchange
