// The state of a run that must survive its exchange, and the one function that changes it. The
// exchange applies each event as it decides it, and journals it before a message that follows from
// it leaves; a reader of the journal applies the same events in the same order. Pure, one thread.
//
// An event states a fact that was checked when it was decided. One that does not fit the state is a
// bug of the exchange and is CHECKed; a reader of a file asks misfit() (misfit.h) first.
//
//   DU-1  Only apply() changes the state.
//   DU-2  The same events give the same state, live and offline: hash() is equal after each.
//   DU-3  hash() depends on every fact.
//   DU-4  An image (state_image.h) and the events after it give the same state as all events.
#pragma once

#include <cstdint>
#include <utility>

#include "actors/exchange/state/journal_event.h"
#include "actors/exchange/state/run_facts.h"

namespace tandem::exchange {

class DurableState {
 public:
  DurableState() = default;
  explicit DurableState(RunFacts facts) : facts_(std::move(facts)) {}  // facts_of() an image

  void apply(const JournalEvent& event);

  // Valid until the next apply().
  const RunFacts& facts() const { return facts_; }
  // The deadlines of leases are the one part of the ledger that no event tells: the exchange sets
  // them, they are not in hash(), and a lease has none after apply().
  void set_deadline(const scheduler::LeaseKey& lease, Time deadline);

  // The hash covers all facts except deadlines; O(facts).
  std::uint64_t hash() const;

 private:
  // These are in durable_groups.cc.
  void on(const GroupAdmitted& event);
  void on(const RolloutLeased& event);
  void on(const GroupGenerated& event);
  void on(const RewardLeased& event);
  void on(const GroupScored& event);
  void on(const BatchFormed& event);
  void on(const StepTrained& event);
  void on(const LeaseReleased& event);
  void on(const LeaseExpired& event);
  void on(const EngineCrashed& event);
  void on(const LeaseAdopted& event);
  void on(const GroupHandedBack& event);
  void on(const GroupDiscarded& event);
  void on(const LiveDiscarded& event);
  void on(const AnswerRefused& event);
  void on(const CommitRefused& event);
  void on(const CheckpointKept& event);
  void on(const BatchesKept& event);
  // These are in durable_state.cc.
  void on(const RunBegan& event);
  void on(const RunResumed& event);
  void on(const ExchangeFollowed& event);
  void on(const StageEntered& event);
  void on(const EndAsked& event);
  void on(const LastSaveAsked& event);
  void on(const RunEnded& event);
  void on(const StateHashed& event);
  void on(const TotalsNoted& event);
  void on(const WorkerCameUp& event);
  void on(const WorkerDrains& event);
  void on(const VersionInstalled& event);
  void on(const InstallPaused& event);
  void on(const IncarnationEnded& event);
  void on(const LearnerCameUp& event);
  void on(const LearnerRestarted& event);
  void on(const LearnerAsked& event);
  void on(const LineageBegan& event);
  void on(const VersionPublished& event);
  void on(const VersionsRestored& event);
  void on(const VersionWithdrawn& event);
  void on(const CheckpointAsked& event);
  void on(const BroadcastEpochOpened& event);
  void on(const EvaluationBegan& event);
  void on(const EvaluationEnded& event);
  void on(const EvaluationIncomplete& event);
  void on(const SamplesFull& event);
  void on(const MetricsThinned& event);

  scheduler::LeaseTerms terms(const ActorId& holder) const;
  scheduler::LeaseKey key(GroupId group, scheduler::LeaseId lease) const;
  void take(const messages::Publication& publication);
  void forget_lost_versions();  // raises oldest_retained to the oldest version that can be had
  void leave_start();           // a learner that comes or goes before the first step begins again

  RunFacts facts_;
};

}  // namespace tandem::exchange
