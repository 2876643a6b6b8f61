// The events of an exchange's journal: each is one change of the state of a run that must survive
// the exchange (DurableState::apply() is the only place that makes such a change). Replaying them
// in their order gives the same state, live and offline.
//
// Every event is plain data that an offline reader needs no configuration for: RunBegan has the
// settings on which later events depend. journal_rows.h maps each to rows of SQL; the columns that
// people read there (`kind`, `detail`) are derived and never read back.
//
// An event's fields are a schema (kJournalSchema). A change of them takes another number, so that a
// run directory of another version is refused by name; a new event at the end does not.
#pragma once

#include <cstdint>
#include <variant>

#include "actors/exchange/state/group_events.h"
#include "actors/exchange/state/job_events.h"
#include "actors/exchange/state/learner_events.h"

namespace tandem::exchange {

inline constexpr std::int64_t kJournalSchema = 3;

using JournalEvent = std::variant<
    RunBegan, RunResumed, StageEntered, EndAsked, LastSaveAsked, RunEnded, StateHashed, TotalsNoted,
    WorkerCameUp, WorkerDrains, VersionInstalled, IncarnationEnded, GroupAdmitted, RolloutLeased,
    GroupGenerated, RewardLeased, GroupScored, BatchFormed, StepTrained, LeaseReleased,
    LeaseExpired, GroupHandedBack, GroupDiscarded, LiveDiscarded, AnswerRefused, LearnerCameUp,
    LearnerRestarted, LearnerAsked, VersionPublished, VersionsRestored, CommitRefused,
    CheckpointAsked, CheckpointKept, EvaluationBegan, EvaluationEnded, EvaluationIncomplete,
    SamplesFull, ExchangeFollowed, LeaseAdopted, EngineCrashed, LineageBegan, BatchesKept,
    VersionWithdrawn, MetricsThinned, BroadcastEpochOpened, InstallPaused>;

// An event with the time at which it was written, which the state never depends on.
struct JournalEntry {
  std::int64_t time_ms = 0;  // since 1970
  JournalEvent event;
};

}  // namespace tandem::exchange
