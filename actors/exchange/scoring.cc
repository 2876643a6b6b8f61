// A failure never becomes a score: a group of which one trajectory has none is discarded with its
// reason, and a reward that fails for many groups in a row ends the job. A group without variance
// teaches nothing under group-relative advantages; where the job filters such groups it is
// discarded and replaced, until so many batches have been generated for one step.
#include "actors/exchange/scoring.h"

#include <algorithm>
#include <utility>

#include "actors/exchange/checks.h"
#include "actors/exchange/discards.h"
#include "actors/exchange/run_end.h"
#include "actors/exchange/workers.h"

namespace tandem::actors {

using scheduler::DiscardReason;
using scheduler::GroupState;
using scheduler::LeaseId;

namespace {

// A reward that always fails would discard and replace groups for ever.
constexpr std::int64_t kRewardFailedBatchesMax = 8;

// Under fixed_lag the count of the group's own slot decides: what else was generated meanwhile
// depends on timing.
bool may_filter(const RunView& view, const GroupFacts& facts) {
  if (!view.config.filter_groups) return false;
  if (facts.slot) return facts.slot->attempt + 1 < view.config.gen_batches_max;
  return view.facts.flow.generated_for_step <=
         view.config.gen_batches_max * view.config.budget.groups_per_step;
}

// Of a trajectory that got no score.
void write_failure_sample(Turn& turn, const GroupFacts& facts, std::size_t trajectory,
                          const ScoreFailed& failure) {
  turn.send(WriteFailureSample{.step = StepId{turn.facts.flow.ledger.next_commit().value + 1},
                               .payload = facts.header->payload,
                               .trajectory = trajectory,
                               .record = turn.config.train[turn.config.prompt_at(facts.position)],
                               .keys = turn.config.record_keys,
                               .reason = failure.reason});
}

void discard_failed(Turn& turn, GroupId group, std::size_t trajectory, const ScoreFailed& failure) {
  write_failure_sample(turn, turn.facts.flow.entries.at(group), trajectory, failure);
  discard(turn, group, DiscardReason::kRewardFailed);
  const std::int64_t failures = turn.facts.flow.reward_failures;
  if (turn.seen.workers.troubles.never_worked())
    fail_for_reward(turn, failure.reason);
  else if (failures >= kRewardFailedBatchesMax * turn.config.budget.groups_per_step)
    fail(turn, "the rewards of " + std::to_string(failures) +
                   " groups failed in a row; the last: " +
                   turn.seen.workers.troubles.explained(failure.reason));
}

void take_scores(Turn& turn, const Sender& from, const GroupScore& group) {
  const LeaseId lease{group.attempt};
  const scheduler::Ledger& ledger = turn.facts.flow.ledger;
  if (const auto refusal = ledger.refusal_of_scored({group.group, lease, turn.config.epoch})) {
    return turn.record(AnswerRefused{.answer = RefusedAnswer::kScores,
                                     .group = group.group,
                                     .lease = lease,
                                     .holder = from,
                                     .oldest = {},
                                     .refusal = *refusal});
  }
  for (const TrajectoryScore& score : group.scores)
    turn.seen.workers.troubles.judged(from.actor, score);
  std::vector<float> rewards;
  for (const TrajectoryScore& score : group.scores) {
    if (const auto* failure = std::get_if<ScoreFailed>(&score))
      return discard_failed(turn, group.group, rewards.size(), *failure);
    rewards.push_back(static_cast<float>(std::get<Scored>(score).value));
  }
  if (std::ssize(rewards) != turn.config.n)
    return discard(turn, group.group, DiscardReason::kRewardFailed);
  const auto [low, high] = std::ranges::minmax(rewards);
  const bool varied = low != high;
  if (!varied && may_filter(turn.view(), turn.facts.flow.entries.at(group.group)))
    return discard(turn, group.group, DiscardReason::kZeroVariance);
  turn.record(GroupScored{.group = group.group,
                          .lease = lease,
                          .rewards = std::move(rewards),
                          .kept_without_variance = !varied && turn.config.filter_groups});
}

}  // namespace

void lease_rewards(Turn& turn) {
  const GroupFlow& flow = turn.facts.flow;
  for (const auto& [name, worker] : turn.facts.workers.rewards) {
    if (worker.draining) continue;
    ScoreGroups batch;
    while (!flow.ledger.queue(GroupState::kGenerated).empty() &&
           flow.ledger.held_by(worker.who.incarnation) < worker.capacity) {
      const GroupId group = flow.ledger.queue(GroupState::kGenerated).begin()->second;
      const LeaseId lease = flow.ledger.next_lease();
      turn.record(RewardLeased{group, lease, worker.who});
      turn.set_deadline({group, lease, turn.config.epoch}, turn.now + turn.config.reward_lease);
      const GroupFacts& facts = flow.entries.at(group);
      batch.groups.push_back({.group = group,
                              .attempt = static_cast<std::uint32_t>(lease.value),
                              .data = turn.config.train[turn.config.prompt_at(facts.position)].data,
                              .payload = facts.header->payload});
    }
    if (!batch.groups.empty()) turn.tell_reward(worker.who, std::move(batch));
  }
}

void fail_for_reward(Turn& turn, const std::string& reason) {
  fail(turn, "the reward has never worked: each of the first " + std::to_string(kFirstFailuresMax) +
                 " completions failed; the last: " + turn.seen.workers.troubles.explained(reason));
}

void take(Turn& turn, const GroupsScored& scored) {
  if (!find(turn.facts.workers.rewards, scored.from)) return;
  for (const GroupScore& group : scored.groups) {
    if (const auto why = misfit(turn.view(), scored.from, group.group, group.attempt))
      return refuse(turn, scored.from, "GroupsScored: " + *why);
    take_scores(turn, scored.from, group);
  }
  extend_leases(turn, scored.from, turn.config.reward_lease);
  turn.wake();
}

// Late ones too are of use: they say why the actor ended.
void take(Turn& turn, RewardTrouble trouble) {
  if (!find(turn.facts.workers.rewards, trouble.from) && !has_ended(turn.facts, trouble.from))
    return;
  const std::string actor = trouble.from.actor;
  const RewardTrouble* const said = turn.seen.workers.troubles.take(std::move(trouble), turn.now);
  if (!said) return;
  turn.notify(ExchangeEvent{turn.config.job, actor, text(*said), EventLevel::kWarning});
  turn.wake();
}

}  // namespace tandem::actors
