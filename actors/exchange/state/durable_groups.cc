// The events of a group's trip, in the order of the trip, each as one change of the ledger and of
// the facts beside it. The ledger CHECKs that a transition is possible; the exchange has asked it
// before (Ledger::refusal_of_…), so a failure here is a bug and not an answer that came late.
#include <algorithm>

#include "actors/exchange/state/durable_state.h"
#include "runtime/base/check.h"

namespace tandem::exchange {

using scheduler::LeaseId;

namespace {

PolicyVersion oldest_of(const messages::GroupHeader& header) {
  PolicyVersion oldest =
      header.trajectories.empty() ? PolicyVersion{} : header.trajectories[0].oldest;
  for (const messages::TrajectoryHeader& trajectory : header.trajectories)
    oldest = std::min(oldest, trajectory.oldest);
  return oldest;
}

}  // namespace

scheduler::LeaseTerms DurableState::terms(const ActorId& holder) const {
  return {.holder = holder.incarnation, .epoch = facts_.began.epoch, .deadline = kNoDeadline};
}

scheduler::LeaseKey DurableState::key(GroupId group, LeaseId lease) const {
  return {.group = group, .id = lease, .epoch = facts_.began.epoch};
}

void DurableState::set_deadline(const scheduler::LeaseKey& lease, Time deadline) {
  CHECK(!facts_.flow.ledger.extend(lease, deadline));
}

void DurableState::on(const GroupAdmitted& event) {
  GroupFlow& flow = facts_.flow;
  CHECK(flow.ledger.admit() == event.group);
  if (event.slot)
    flow.fixed->issued(*event.slot, event.group);
  else
    flow.position_next = event.position + 1;
  flow.entries.emplace(event.group, GroupFacts{.position = event.position, .slot = event.slot});
}

void DurableState::on(const RolloutLeased& event) {
  const auto lease =
      facts_.flow.ledger.lease_rollout(event.group, terms(event.holder), event.version);
  CHECK(lease.id == event.lease);
}

void DurableState::on(const GroupGenerated& event) {
  GroupFlow& flow = facts_.flow;
  const messages::GroupHeader& header = event.header;
  CHECK(!flow.ledger.generated(key(header.group, LeaseId{header.attempt}), oldest_of(header)));
  ++flow.generated_for_step;
  flow.held.hold(header.payload);
  flow.entries.at(header.group).header = header;
  flow.suspects.generated(header.group, event.holder.name);
}

void DurableState::on(const RewardLeased& event) {
  CHECK(facts_.flow.ledger.lease_reward(event.group, terms(event.holder)).id == event.lease);
}

void DurableState::on(const GroupScored& event) {
  GroupFlow& flow = facts_.flow;
  CHECK(!flow.ledger.scored(key(event.group, event.lease)));
  GroupFacts& facts = flow.entries.at(event.group);
  facts.rewards = event.rewards;
  facts.failed = event.failed;
  // Where failures have a reward, a group that has nothing else is a failure all the same.
  flow.reward_failures = failed_whole(event) ? flow.reward_failures + 1 : 0;
  if (flow.fixed) flow.fixed->scored(event.group);
}

void DurableState::on(const BatchFormed& event) {
  facts_.flow.ledger.start_training(event.step, event.groups);
  facts_.flow.generated_for_step = 0;
}

// A step that a restarted learner repeats has its groups trained already (LG-2).
void DurableState::on(const StepTrained& event) {
  GroupFlow& flow = facts_.flow;
  const bool repeated = flow.ledger.replaying();
  CHECK(!flow.ledger.commit(event.step, event.learner));
  facts_.learner.owed.reset();
  facts_.learner.training.reset();
  facts_.learner.checksums[{event.step.value + 1}] = event.checksum;
  if (event.publication) {
    take(*event.publication);
    flow.ledger.published(facts_.versions.published);
  }
  if (flow.fixed && !repeated) flow.fixed->committed(event.step);
}

void DurableState::on(const BatchesKept& event) { facts_.learner.batches_kept = event.from; }

// The ledger forgets the groups that no learner can need again, and the facts go with them.
void DurableState::on(const CheckpointKept& event) {
  LearnerFacts& learner = facts_.learner;
  GroupFlow& flow = facts_.flow;
  if (learner.checkpoint_awaited == event.step) learner.checkpoint_awaited.reset();
  if (event.step <= learner.durable) return;
  learner.durable = event.step;
  const StepId from = learner.batches_from();
  flow.ledger.durable(from);
  learner.checksums.erase(learner.checksums.begin(), learner.checksums.lower_bound(from));
  std::erase_if(flow.entries, [&flow](const auto& entry) {
    const auto& [group, facts] = entry;
    if (flow.ledger.find(group)) return false;
    if (facts.header) flow.held.forget(facts.header->payload);
    return true;
  });
}

void DurableState::on(const LeaseReleased& event) { facts_.flow.ledger.release(event.group); }

void DurableState::on(const EngineCrashed& event) {
  facts_.flow.suspects.crashed({.actor = event.who.name,
                                .held = event.groups,
                                .alone = event.alone,
                                .worked = event.worked});
}

void DurableState::on(const LeaseExpired& event) { facts_.flow.ledger.release(event.group); }

void DurableState::on(const LeaseAdopted& event) {
  CHECK(!facts_.flow.ledger.adopt(event.group, event.lease, terms(event.holder)));
}

void DurableState::on(const GroupHandedBack& event) {
  CHECK(!facts_.flow.ledger.hand_back(key(event.group, event.lease), scheduler::Kept::kNothing));
}

void DurableState::on(const GroupDiscarded& event) {
  GroupFlow& flow = facts_.flow;
  if (event.reason == scheduler::DiscardReason::kRewardFailed) ++flow.reward_failures;
  if (event.reason == scheduler::DiscardReason::kZeroVariance ||
      event.reason == scheduler::DiscardReason::kOutsideBounds)
    flow.reward_failures = 0;
  flow.ledger.discard(event.group, event.reason);
  const bool guilty = flow.suspects.is_guilty(event.group);
  flow.suspects.forget(event.group);
  if (flow.fixed) flow.fixed->discarded(event.group);
  const auto entry = flow.entries.find(event.group);
  // Further groups of such a prompt are discarded without a trial, and say nothing new.
  if (event.reason == scheduler::DiscardReason::kPoisonPrompt && guilty)
    flow.poisoned.insert(entry->second.position);
  if (entry->second.header) flow.held.forget(entry->second.header->payload);
  flow.entries.erase(entry);
}

void DurableState::on(const LiveDiscarded& event) {
  facts_.flow.ledger.discard_live(event.reason);
  for (const GroupId group : event.groups) {
    facts_.flow.entries.erase(group);
    facts_.flow.suspects.forget(group);
  }
}

// A group whose tokens are too old is its holder's no longer; it is generated anew (LG-5).
void DurableState::on(const AnswerRefused& event) {
  facts_.flow.ledger.refused(event.refusal);
  if (event.refusal == scheduler::Refusal::kOverAge) facts_.flow.ledger.release(event.group);
}

void DurableState::on(const CommitRefused& event) { facts_.flow.ledger.refused(event.refusal); }

}  // namespace tandem::exchange
