#include "tests/actors/controller/journal_witness.h"

#include <algorithm>
#include <utility>

#include "runtime/base/check.h"

namespace tandem::controller {

void JournalWitness::take(const exchange::JournalEvent& event) {
  std::visit([this](const auto& one) { on(one); }, event);
}

void JournalWitness::on(const exchange::RunBegan&) { *this = {}; }

void JournalWitness::on(const exchange::RolloutLeased& event) {
  newest_[event.group] = {event.lease, event.holder};
}

void JournalWitness::on(const exchange::RewardLeased& event) {
  newest_[event.group] = {event.lease, event.holder};
}

void JournalWitness::on(const exchange::LeaseAdopted& event) {
  newest_[event.group] = {event.lease, event.holder};
}

void JournalWitness::on(const exchange::GroupGenerated& event) {
  CHECK(leased(event.header.group, event.header.attempt, event.holder) && "LG-3");
}

// The event does not name the reward actor.
void JournalWitness::on(const exchange::GroupScored& event) {
  CHECK(newest_.at(event.group).id == event.lease && "LG-3");
}

void JournalWitness::on(const exchange::GroupHandedBack& event) {
  CHECK(leased(event.group, event.lease.value, event.holder) && "LG-3");
}

void JournalWitness::on(const exchange::BatchFormed& event) { batches_[event.step] = event.groups; }

void JournalWitness::on(const exchange::IncarnationEnded& event) {
  ended_.insert(event.who.incarnation);
}

void JournalWitness::on(const exchange::CheckpointAsked& event) { checkpoints_.insert(event.step); }

bool JournalWitness::leased(GroupId group, std::uint64_t attempt, const ActorId& holder) const {
  const auto newest = newest_.find(group);
  return newest != newest_.end() && newest->second == Lease{scheduler::LeaseId{attempt}, holder};
}

// A message may wait for room in its link while its lease ends and the group is leased again.
void JournalWitness::sent(const ActorId&, const messages::RolloutInbox& message) const {
  const auto* const assign = std::get_if<messages::Assign>(&message);
  if (!assign) return;
  for (const messages::GroupWork& work : assign->groups) {
    const auto newest = newest_.find(work.group);
    CHECK(newest != newest_.end() && newest->second.id.value >= work.attempt && "EX-1");
  }
}

void JournalWitness::sent(const ActorId&, const messages::RewardInbox& message) const {
  const auto* const score = std::get_if<messages::ScoreGroups>(&message);
  if (!score) return;
  for (const messages::GroupToScore& work : score->groups) {
    const auto newest = newest_.find(work.group);
    CHECK(newest != newest_.end() && newest->second.id.value >= work.attempt && "EX-1");
  }
}

// A message that waited for the journal may be for a learner that died meanwhile, and the batch may
// have other groups since.
void JournalWitness::sent(const ActorId& to, const messages::LearnerInbox& message) const {
  if (const auto* const train = std::get_if<messages::TrainStep>(&message)) {
    const auto batch = batches_.find(train->step);
    CHECK(batch != batches_.end() && "EX-1");
    if (ended_.contains(to.incarnation)) return;
    for (const messages::TrainGroup& group : train->groups)
      CHECK(std::ranges::count(batch->second, group.group) == 1 && "EX-1");
  }
  if (const auto* const save = std::get_if<messages::SaveCheckpoint>(&message))
    CHECK(checkpoints_.contains(save->step) && "EX-1");
}

}  // namespace tandem::controller
