// Reads a simulated run's journal and hears the messages of its exchange, and ends the process by a
// CHECK where one does not fit the other. It shares no code with the ledger and the exchange, which
// agree with themselves also where they are wrong.
//
//   An answer is taken only under the newest lease of its group, and of the holder of that lease
//   (LG-3).
//   Work leaves only once the journal has what it follows from (EX-1): a group's lease, a step's
//   batch, a checkpoint that was asked for.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "actors/exchange/state/journal_event.h"
#include "actors/messages/learner.h"
#include "actors/messages/reward.h"
#include "actors/messages/rollout.h"

namespace tandem::controller {

class JournalWitness {
 public:
  void take(const exchange::JournalEvent& event);

  // A message to this peer is about to leave. Other inboxes have no work.
  template <class Inbox>
  void sent(const ActorId&, const Inbox&) const {}
  void sent(const ActorId& to, const messages::RolloutInbox& message) const;
  void sent(const ActorId& to, const messages::RewardInbox& message) const;
  void sent(const ActorId& to, const messages::LearnerInbox& message) const;

 private:
  struct Lease {
    scheduler::LeaseId id;
    ActorId holder;
    bool operator==(const Lease&) const = default;
  };
  template <class Event>
  void on(const Event&) {}
  void on(const exchange::RunBegan&);
  void on(const exchange::RolloutLeased& event);
  void on(const exchange::RewardLeased& event);
  void on(const exchange::LeaseAdopted& event);
  void on(const exchange::GroupGenerated& event);
  void on(const exchange::GroupScored& event);
  void on(const exchange::GroupHandedBack& event);
  void on(const exchange::BatchFormed& event);
  void on(const exchange::IncarnationEnded& event);
  void on(const exchange::CheckpointAsked& event);
  bool leased(GroupId group, std::uint64_t attempt, const ActorId& holder) const;

  std::map<GroupId, Lease> newest_;  // leases that ended stay: the ledger knows what was answered
  std::map<StepId, std::vector<GroupId>> batches_;
  std::set<StepId> checkpoints_;
  std::set<Incarnation> ended_;
};

}  // namespace tandem::controller
