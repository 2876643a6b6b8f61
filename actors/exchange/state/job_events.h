// The journal's events about the run, its actors and its evaluations.
// journal_event.h says how events are used.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/exchange/state/evaluation_kind.h"
#include "actors/exchange/state/group_events.h"
#include "actors/exchange/state/learner_events.h"
#include "actors/exchange/state/run_totals.h"
#include "actors/messages/evaluation_figures.h"
#include "actors/messages/exchange.h"
#include "actors/messages/roles.h"
#include "actors/messages/rollout.h"
#include "runtime/base/ids.h"
#include "runtime/wire/fields.h"
#include "scheduler/fleet/staleness.h"

namespace tandem::scheduler {

TANDEM_WIRE(Budget, max_staleness, lookahead, sync_steps, groups_per_step, steps_total)

}  // namespace tandem::scheduler

namespace tandem::exchange {

enum class RunStage : std::uint8_t { kStarting, kWarmStart, kRunning, kFinishing, kEnded };
TANDEM_WIRE_ENUM(RunStage, kStarting, kWarmStart, kRunning, kFinishing, kEnded)

// An exchange begins, or begins again: the state is that of an empty run with these settings.
struct RunBegan {
  scheduler::Budget budget;
  bool fixed_lag = false;
  std::uint64_t seed = 0;
  Epoch epoch;  // the controller's epoch: one start of it
};
TANDEM_WIRE(RunBegan, budget, fixed_lag, seed, epoch)

// Another exchange goes on with the state as it is, while the run's actors work on. Leases are of
// the epoch before until their holders say that they hold them (LeaseAdopted).
struct ExchangeFollowed {
  Epoch epoch;
};
TANDEM_WIRE(ExchangeFollowed, epoch)

// A group of an earlier incarnation of the run that a resumed one knows.
struct ResumedGroup {
  GroupId group;
  std::int64_t position = 0;                          // as GroupAdmitted's
  std::optional<scheduler::Slot> slot;                // likewise
  std::optional<scheduler::DiscardReason> discarded;  // empty: the group is live
};
TANDEM_WIRE(ResumedGroup, group, position, slot, discarded)

// The run goes on from a checkpoint. The event has all that the state takes from the earlier
// incarnations; so a replay may begin at the RunBegan before it.
struct RunResumed {
  StepId checkpoint;
  std::int64_t issued = 0, trained = 0, retrained = 0;  // as LedgerCounters'
  std::vector<std::int64_t> discarded;                  // by DiscardReason
  GroupId next_group;
  std::int64_t next_position = 0;
  // Live groups and, under fixed_lag, those discarded in slots from the checkpoint on, in the order
  // of admission.
  std::vector<ResumedGroup> groups;
  std::vector<EvaluationKind> evaluated;  // kinds of which a run has one, and has it
};
TANDEM_WIRE(RunResumed, checkpoint, issued, trained, retrained, discarded, next_group,
            next_position, groups, evaluated)

struct StageEntered {
  RunStage stage = RunStage::kStarting;
  std::string message;
};
TANDEM_WIRE(StageEntered, stage, message)

// The run is to end; the first cause counts, and a later one may extend the reason.
struct EndAsked {
  messages::JobOutcome outcome = messages::JobOutcome::kCancelled;
  std::string reason;
};
TANDEM_WIRE(EndAsked, outcome, reason)

// A cancelled run ends once a checkpoint of `step` is saved.
struct LastSaveAsked {
  StepId step;
};
TANDEM_WIRE(LastSaveAsked, step)
std::string saving_text(StepId step);  // the text in which people read of it

struct RunEnded {
  std::string reason;
  messages::JobOutcome outcome = messages::JobOutcome::kSucceeded;
};
TANDEM_WIRE(RunEnded, reason, outcome)

// DurableState::hash() after all events before this one.
struct StateHashed {
  std::uint64_t hash = 0;
};
TANDEM_WIRE(StateHashed, hash)
struct TotalsNoted {  // the totals of the run up to `step` committed steps
  StepId step;
  RunTotals totals;
};
TANDEM_WIRE(TotalsNoted, step, totals)

struct WorkerCameUp {
  messages::Role role;
  ActorId who;
  std::int64_t capacity = 0;  // trajectories (rollout) or groups (others)
};
TANDEM_WIRE(WorkerCameUp, role, who, capacity)

struct WorkerDrains {  // it gets no more work
  ActorId who;
};
TANDEM_WIRE(WorkerDrains, who)

struct VersionInstalled {
  ActorId who;
  PolicyVersion version;
};
TANDEM_WIRE(VersionInstalled, who, version)
// How long the rollout did not decode for the install that the event behind this one tells, by its
// own clock.
struct InstallPaused {
  ActorId who;
  PolicyVersion version;
  double seconds = 0;  // > 0
};
TANDEM_WIRE(InstallPaused, who, version, seconds)

// This incarnation, of any role, and all before it are over: none of them is heard again (EX-6).
struct IncarnationEnded {
  ActorId who;
};
TANDEM_WIRE(IncarnationEnded, who)

struct EvaluationBegan {
  messages::EvaluationId evaluation;
  EvaluationKind kind = EvaluationKind::kPeriodic;
  PolicyVersion version;
};
TANDEM_WIRE(EvaluationBegan, evaluation, kind, version)

struct EvaluationEnded {
  messages::EvaluationId evaluation;
  EvaluationKind kind = EvaluationKind::kPeriodic;
  PolicyVersion version;
  messages::RewardFigures all;
  std::map<std::string, messages::RewardFigures> sources;  // by data source
};
TANDEM_WIRE(EvaluationEnded, evaluation, kind, version, all, sources)
messages::EvaluationFigures figures_of(
    const EvaluationEnded& ended);  // the same figures, as reports have them

struct EvaluationIncomplete {  // prompts that no rollout can generate any more
  PolicyVersion version;
  std::int64_t prompts = 0;
};
TANDEM_WIRE(EvaluationIncomplete, version, prompts)

struct SamplesFull {  // of samples.jsonl the oldest lines go from now on
  std::int64_t bytes_max = 0;
};
TANDEM_WIRE(SamplesFull, bytes_max)
struct MetricsThinned {  // of metrics.jsonl every second of the older lines goes
  std::int64_t bytes_max = 0;
};
TANDEM_WIRE(MetricsThinned, bytes_max)

}  // namespace tandem::exchange
