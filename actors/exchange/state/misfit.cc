// Each event is judged by the questions that the exchange puts to the ledger before it records the
// event (Ledger::refusal_of_…, the verdicts of the staleness budget), and by what the ledger and
// FixedLag ask of their callers. Only numbers that the exchange makes itself are bounded here, so
// that no peer can say a number with which its own event does not fit.
#include "actors/exchange/state/misfit.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

namespace tandem::exchange {
namespace {

using scheduler::GroupRecord;
using scheduler::GroupState;
using scheduler::LeaseId;
using scheduler::Refusal;
using Clause = std::optional<std::string>;  // why an event does not fit

// The greatest numbers of steps, and of groups in one step: their product stays below 2^63.
constexpr std::int64_t kNumberMax = std::int64_t{1} << 40;
constexpr std::int64_t kGroupsPerStepMax = std::int64_t{1} << 22;

bool sane(std::int64_t number) { return number >= 0 && number <= kNumberMax; }

std::string text_of(GroupId group) { return "group " + std::to_string(group.value); }

// `why` makes the clause, which almost no event needs.
template <class Why>
Clause unless(bool fits, const Why& why) {
  if (fits) return std::nullopt;
  return why();
}

Clause unless_taken(const std::optional<Refusal>& refusal, GroupId group) {
  if (!refusal) return std::nullopt;
  return text_of(group) + " would refuse it: " + scheduler::name(*refusal);
}

// The versions that are published after this publication are of steps below `end`.
Clause unless_published(const RunFacts& facts, const messages::Publication& publication,
                        StepId end) {
  return unless(std::max(facts.versions.published, publication.version).value <= end.value, [&] {
    return std::string("it publishes version " + std::to_string(publication.version.value) +
                       ", and " + std::to_string(end.value) + " steps are trained");
  });
}

// Names a lease as the ledger wants it named by an answer.
scheduler::LeaseKey key(const RunFacts& facts, GroupId group, LeaseId lease) {
  return {.group = group, .id = lease, .epoch = facts.began.epoch};
}

Clause misfit(const RunFacts&, const RunBegan& event) {
  const scheduler::Budget& budget = event.budget;
  return unless(sane(budget.max_staleness) && sane(budget.lookahead) && budget.sync_steps > 0 &&
                    sane(budget.sync_steps) && budget.groups_per_step > 0 &&
                    budget.groups_per_step <= kGroupsPerStepMax && sane(budget.steps_total) &&
                    (!event.fixed_lag || budget.sync_steps == 1),
                [&] { return std::string("its settings are none of a run"); });
}

// The slots of a run that is resumed: attempts of one slot are issued and discarded in their order.
Clause slots_misfit(const RunFacts& facts, const RunResumed& event) {
  std::map<std::pair<StepId, std::int32_t>, std::int32_t> next_attempt;
  std::set<std::pair<StepId, std::int32_t>> taken;
  for (const ResumedGroup& group : event.groups) {
    const bool ahead = group.slot && group.slot->step >= event.checkpoint;
    if (!ahead && group.discarded) continue;
    if (!ahead) return text_of(group.group) + " lives and has no slot";
    const auto place = std::pair(group.slot->step, group.slot->index);
    std::int32_t& attempt = next_attempt[place];
    if (group.slot->index < 0 || group.slot->index >= facts.began.budget.groups_per_step ||
        group.slot->attempt != attempt || taken.contains(place))
      return text_of(group.group) + " has a slot that is not free";
    if (group.discarded)
      ++attempt;
    else
      taken.insert(place);
  }
  return std::nullopt;
}

Clause misfit(const RunFacts& facts, const RunResumed& event) {
  if (facts.resumed || facts.flow.ledger.next_group() != GroupId{1}) return "the run has begun";
  if (event.discarded.size() > scheduler::kDiscardReasons) return "it has unknown reasons";
  std::int64_t live = 0, ended = 0;
  std::set<GroupId> known;
  for (const ResumedGroup& group : event.groups) {
    if (!known.insert(group.group).second || group.group >= event.next_group)
      return text_of(group.group) + " is there twice, or is not issued yet";
    live += group.discarded ? 0 : 1;
  }
  for (const std::int64_t discarded : event.discarded) {
    if (!sane(discarded)) return "it has a count that is none";
    ended += discarded;
  }
  if (!sane(event.checkpoint.value) || !sane(event.issued) || !sane(event.trained) ||
      !sane(event.retrained) || event.next_position < 0)
    return "it has a count that is none";
  if (event.trained != event.checkpoint.value * facts.began.budget.groups_per_step ||
      event.issued != event.trained + ended + live)
    return "its counts do not add up";
  return facts.flow.fixed ? slots_misfit(facts, event) : std::nullopt;
}

Clause misfit(const RunFacts& facts, const GroupAdmitted& event) {
  const GroupFlow& flow = facts.flow;
  if (event.group != flow.ledger.next_group() || event.position < 0 ||
      event.position == std::numeric_limits<std::int64_t>::max())
    return "the next is " + text_of(flow.ledger.next_group());
  if (event.slot.has_value() != flow.fixed.has_value())
    return "it should, or should not, have a slot";
  if (!event.slot) return std::nullopt;
  return unless(event.slot == flow.fixed->next(facts.versions.published),
                [&] { return std::string("its slot is not the next one"); });
}

Clause misfit(const RunFacts& facts, const RolloutLeased& event) {
  const scheduler::Ledger& ledger = facts.flow.ledger;
  const GroupRecord* const group = ledger.find(event.group);
  if (!group || group->state != GroupState::kAdmitted)
    return text_of(event.group) + " waits for no rollout";
  if (event.lease != ledger.next_lease() || event.holder.incarnation.value == 0)
    return "the next lease is " + std::to_string(ledger.next_lease().value);
  return unless(
      scheduler::lease_verdict(ledger.budget(), ledger.budget_state(), event.version, group->due) ==
          scheduler::LeaseVerdict::kLease,
      [&] { return std::string(text_of(event.group) + " could not be trained in time"); });
}

Clause misfit(const RunFacts& facts, const GroupGenerated& event) {
  PolicyVersion oldest =
      event.header.trajectories.empty() ? PolicyVersion{} : event.header.trajectories[0].oldest;
  for (const messages::TrajectoryHeader& one : event.header.trajectories)
    oldest = std::min(oldest, one.oldest);
  return unless_taken(facts.flow.ledger.refusal_of_generated(
                          key(facts, event.header.group, LeaseId{event.header.attempt}), oldest),
                      event.header.group);
}

Clause misfit(const RunFacts& facts, const RewardLeased& event) {
  const scheduler::Ledger& ledger = facts.flow.ledger;
  const GroupRecord* const group = ledger.find(event.group);
  if (!group || group->state != GroupState::kGenerated)
    return text_of(event.group) + " waits for no score";
  return unless(event.lease == ledger.next_lease() && event.holder.incarnation.value != 0, [&] {
    return std::string("the next lease is " + std::to_string(ledger.next_lease().value));
  });
}

Clause misfit(const RunFacts& facts, const GroupScored& event) {
  return unless_taken(facts.flow.ledger.refusal_of_scored(key(facts, event.group, event.lease)),
                      event.group);
}

Clause misfit(const RunFacts& facts, const BatchFormed& event) {
  const scheduler::Ledger& ledger = facts.flow.ledger;
  const bool learner_ready = ledger.learner().value != 0 && !ledger.replaying();
  scheduler::BudgetState after = ledger.budget_state();
  if (!learner_ready || event.step != ledger.next_commit() || after.next_step != event.step ||
      std::ssize(event.groups) != ledger.budget().groups_per_step)
    return "it is not the batch of the next step";
  std::set<GroupId> batch;
  for (const GroupId id : event.groups) {
    const GroupRecord* const group = ledger.find(id);
    if (!group || group->state != GroupState::kScored || *group->due < event.step ||
        !batch.insert(id).second)
      return text_of(id) + " cannot be trained at that step";
    after.dated.remove(*group->due);
  }
  ++after.next_step.value;
  return unless(scheduler::feasible(ledger.budget(), after),
                [&] { return std::string("other groups could not be trained in time after it"); });
}

Clause misfit(const RunFacts& facts, const StepTrained& event) {
  const GroupFlow& flow = facts.flow;
  if (const auto refusal = flow.ledger.refusal_of_commit(event.step, event.learner))
    return std::string("the step would be refused: ") + scheduler::name(*refusal);
  const bool repeated = flow.ledger.replaying();
  if (flow.fixed && !repeated &&
      (event.step != flow.fixed->first_held() || !flow.fixed->batch(event.step)))
    return "its slots are not all scored";
  if (!event.publication) return std::nullopt;
  const StepId done{flow.ledger.next_commit().value + (repeated ? 0 : 1)};
  return unless_published(facts, *event.publication, done);
}

Clause misfit(const RunFacts& facts, const CheckpointKept& event) {
  return unless(event.step <= facts.flow.ledger.next_commit(),
                [&] { return std::string("the step is not trained"); });
}

Clause misfit(const RunFacts& facts, const BatchesKept& event) {
  return unless(event.from.value >= 0 && event.from <= facts.flow.ledger.next_commit(),
                [&] { return std::string("the step is not trained"); });
}

Clause misfit(const RunFacts& facts, const BroadcastEpochOpened& event) {
  return unless(event.epoch > facts.broadcast_epoch && event.epoch <= kNumberMax,
                [&] { return std::string("the epoch is not a new one"); });
}

Clause misfit(const RunFacts& facts, const LearnerAsked& event) {
  return unless(!event.step || facts.flow.ledger.batch(*event.step),
                [&] { return std::string("the step has no batch"); });
}

Clause unless_leased(const RunFacts& facts, GroupId id) {
  const GroupRecord* const group = facts.flow.ledger.find(id);
  return unless(group && group->lease, [&] { return std::string(text_of(id) + " has no lease"); });
}

Clause misfit(const RunFacts& facts, const EngineCrashed& event) {
  std::set<GroupId> groups;
  for (const GroupId group : event.groups) {
    if (!groups.insert(group).second) return text_of(group) + " is there twice";
    if (const Clause why = unless_leased(facts, group)) return why;
  }
  return std::nullopt;
}

Clause misfit(const RunFacts& facts, const LeaseReleased& event) {
  return unless_leased(facts, event.group);
}

Clause misfit(const RunFacts& facts, const LeaseExpired& event) {
  return unless_leased(facts, event.group);
}

Clause misfit(const RunFacts& facts, const LeaseAdopted& event) {
  const GroupRecord* const group = facts.flow.ledger.find(event.group);
  return unless(group && group->lease && group->lease->id == event.lease &&
                    group->lease->holder == event.holder.incarnation,
                [&] { return std::string(text_of(event.group) + " does not have that lease"); });
}

Clause misfit(const RunFacts& facts, const GroupHandedBack& event) {
  return unless_taken(facts.flow.ledger.refusal_of_hand_back(key(facts, event.group, event.lease)),
                      event.group);
}

Clause misfit(const RunFacts& facts, const GroupDiscarded& event) {
  const GroupRecord* const group = facts.flow.ledger.find(event.group);
  return unless(group && is_live(group->state) && group->state != GroupState::kTraining,
                [&] { return std::string(text_of(event.group) + " cannot be discarded"); });
}

Clause misfit(const RunFacts&, const LiveDiscarded& event) {
  using scheduler::DiscardReason;
  return unless(
      event.reason == DiscardReason::kJobFinished || event.reason == DiscardReason::kCancelled,
      [&] { return std::string("it has no reason for which a run ends"); });
}

Clause misfit(const RunFacts& facts, const AnswerRefused& event) {
  return event.refusal == Refusal::kOverAge ? unless_leased(facts, event.group) : std::nullopt;
}

Clause misfit(const RunFacts& facts, const VersionInstalled& event) {
  return unless(facts.workers.rollouts().contains(event.who.name),
                [&] { return std::string(event.who.name + " is no rollout that is up"); });
}

Clause misfit(const RunFacts& facts, const LearnerRestarted& event) {
  const scheduler::Ledger& ledger = facts.flow.ledger;
  return unless(event.who.incarnation.value != 0 &&
                    (event.checkpoint == ledger.next_commit() ||
                     (event.checkpoint < ledger.next_commit() && ledger.batch(event.checkpoint))),
                [&] { return std::string("the batches since its checkpoint are not known"); });
}

Clause misfit(const RunFacts& facts, const VersionPublished& event) {
  if (event.who.incarnation.value == 0) return "it names no learner";
  return unless_published(facts, event.publication, facts.flow.ledger.next_commit());
}

Clause misfit(const RunFacts& facts, const VersionsRestored& event) {
  return unless_published(facts, event.publication, facts.flow.ledger.next_commit());
}

// Every other event is a fact that needs no other.
template <class Event>
Clause misfit(const RunFacts&, const Event&) {
  return std::nullopt;
}

}  // namespace

std::optional<std::string> misfit(const RunFacts& facts, const JournalEvent& event) {
  return std::visit([&](const auto& one) { return misfit(facts, one); }, event);
}

}  // namespace tandem::exchange
