// A failure becomes a reward only where the job names one (reward.on_failure), and is counted then.
// Otherwise a group of which one trajectory has no score is discarded with its reason. A reward
// that fails for many groups in a row ends the job. A group that algorithm.filter_groups is for
// (group_filter.h) is discarded and replaced, until so many batches have been generated for one
// step; later ones are kept.
#include "actors/exchange/scoring.h"

#include <algorithm>
#include <utility>

#include "actors/exchange/checks.h"
#include "actors/exchange/discards.h"
#include "actors/exchange/evaluating.h"
#include "actors/exchange/follow.h"
#include "actors/exchange/run_end.h"
#include "actors/exchange/workers.h"

namespace tandem::exchange {

using scheduler::DiscardReason;
using scheduler::GroupState;
using scheduler::LeaseId;

namespace {

// A reward that always fails would discard and replace groups for ever.
constexpr std::int64_t kRewardFailedBatchesMax = 8;

// Under fixed_lag the count of the group's own slot decides: how much else was generated meanwhile
// depends on timing.
bool may_filter(const RunView& view, const GroupFacts& facts) {
  if (facts.slot) return facts.slot->attempt + 1 < view.config.gen_batches_max;
  return view.facts.flow.generated_for_step <=
         view.config.gen_batches_max * view.config.budget.groups_per_step;
}

// Writes the sample of a trajectory that got no score.
void write_failure_sample(Turn& turn, const GroupFacts& facts, std::size_t trajectory,
                          const messages::ScoreFailed& failure) {
  turn.send(WriteFailureSample{.step = StepId{turn.facts.flow.ledger.next_commit().value + 1},
                               .payload = facts.header->payload,
                               .trajectory = trajectory,
                               .record = turn.config.train[turn.config.prompt_at(facts.position)],
                               .keys = turn.config.record_keys,
                               .reason = failure.reason,
                               .reward = turn.config.on_failure});
}

// Ends the job where the reward has never worked, or has failed for too many groups in a row.
void end_if_failing(Turn& turn, const messages::ScoreFailed& last) {
  const std::int64_t failures = turn.facts.flow.reward_failures;
  if (turn.seen.workers.troubles.never_worked())
    fail_for_reward(turn, last.reason);
  else if (failures >= kRewardFailedBatchesMax * turn.config.budget.groups_per_step)
    fail(turn, "the rewards of " + std::to_string(failures) +
                   " groups failed in a row; the last: " +
                   turn.seen.workers.troubles.explained(last.reason));
}

// A group's scores as the exchange uses them: failures have a reward where the job gives them one.
struct Rewards {
  std::vector<float> values;
  std::int64_t failed = 0;
  const messages::ScoreFailed* last_failure = nullptr;
  ScoreNotes notes;
};

// The first trajectory without a reward, where there is one.
std::optional<std::size_t> without_reward(const RunView& view, const messages::GroupScore& group) {
  if (view.config.on_failure) return std::nullopt;
  const auto failed =
      std::ranges::find_if(group.scores, [](const messages::TrajectoryScore& score) {
        return std::holds_alternative<messages::ScoreFailed>(score);
      });
  if (failed == group.scores.end()) return std::nullopt;
  return static_cast<std::size_t>(failed - group.scores.begin());
}

Rewards rewards_of(Turn& turn, const messages::GroupScore& group) {
  Rewards rewards;
  ScoreNotes& notes = rewards.notes;
  for (std::size_t i = 0; i < group.scores.size(); ++i) {
    if (const auto* scored = std::get_if<messages::Scored>(&group.scores[i])) {
      rewards.values.push_back(static_cast<float>(scored->value));
      if (scored->extra.empty()) continue;
      notes.extras.resize(group.scores.size());
      notes.extras[i] = scored->extra;
      continue;
    }
    rewards.last_failure = &std::get<messages::ScoreFailed>(group.scores[i]);
    rewards.values.push_back(static_cast<float>(*turn.config.on_failure));
    ++rewards.failed;
    notes.errors.resize(group.scores.size());
    notes.errors[i] = rewards.last_failure->reason;
    write_failure_sample(turn, turn.facts.flow.entries.at(group.group), i, *rewards.last_failure);
  }
  return rewards;
}

void discard_failed(Turn& turn, GroupId group, const messages::ScoreFailed& failure) {
  discard(turn, group, DiscardReason::kRewardFailed);
  end_if_failing(turn, failure);
}

void take_rewards(Turn& turn, const messages::GroupScore& group, Rewards rewards) {
  turn.seen.fleet.delayed(FleetDelay::kScore, turn.now - turn.seen.groups.at(group.group).moved);
  const auto reason = reason_to_filter(turn.config.filter_groups, rewards.values);
  const bool all_failed = rewards.failed == std::ssize(rewards.values);
  if (reason && may_filter(turn.view(), turn.facts.flow.entries.at(group.group))) {
    if (all_failed) return discard_failed(turn, group.group, *rewards.last_failure);
    return discard(turn, group.group, *reason);
  }
  const bool has_notes = !rewards.notes.extras.empty() || !rewards.notes.errors.empty();
  if (has_notes) turn.seen.notes[group.group] = std::move(rewards.notes);
  turn.record(GroupScored{.group = group.group,
                          .lease = LeaseId{group.attempt},
                          .rewards = std::move(rewards.values),
                          .kept = reason.has_value(),
                          .failed = rewards.failed});
  if (rewards.last_failure) end_if_failing(turn, *rewards.last_failure);
}

void take_scores(Turn& turn, const ActorId& from, const messages::GroupScore& group) {
  const LeaseId lease{group.attempt};
  const scheduler::Ledger& ledger = turn.facts.flow.ledger;
  if (const auto refusal = ledger.refusal_of_scored({group.group, lease, turn.config.epoch})) {
    if (turn.seen.workers.by_actor[from.name].came_back) return;  // it is told again
    return turn.record(AnswerRefused{.answer = RefusedAnswer::kScores,
                                     .group = group.group,
                                     .lease = lease,
                                     .holder = from,
                                     .oldest = {},
                                     .refusal = *refusal});
  }
  for (const messages::TrajectoryScore& score : group.scores)
    turn.seen.workers.troubles.judged(from.name, score);
  if (const auto failed = without_reward(turn.view(), group)) {
    const auto& failure = std::get<messages::ScoreFailed>(group.scores[*failed]);
    write_failure_sample(turn, turn.facts.flow.entries.at(group.group), *failed, failure);
    return discard_failed(turn, group.group, failure);
  }
  if (std::ssize(group.scores) != turn.config.n)
    return discard(turn, group.group, DiscardReason::kRewardFailed);
  take_rewards(turn, group, rewards_of(turn, group));
}

}  // namespace

void lease_rewards(Turn& turn) {
  const GroupFlow& flow = turn.facts.flow;
  for (const auto& [name, worker] : turn.facts.workers.of(messages::Role::kReward)) {
    if (worker.draining || !is_here(turn.view(), worker.who)) continue;
    messages::ScoreGroups batch;
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
    if (!batch.groups.empty()) turn.tell(worker.who, std::move(batch));
  }
}

void evaluate_by_rewards(Turn& turn, Evaluation& evaluation) {
  for (const auto& [name, worker] : turn.facts.workers.of(messages::Role::kReward)) {
    if (worker.draining || !is_here(turn.view(), worker.who)) continue;
    while (evaluation.texts_wait()) {
      messages::ScoreTexts work{.evaluation = evaluation.id()};
      for (messages::EvaluationText& text : evaluation.take_texts(name, kEvaluationChunk))
        work.texts.push_back(
            {.index = text.index,
             .sample = text.sample,
             .data = turn.config.validation[static_cast<std::size_t>(text.index)].data,
             .text = std::move(text.text),
             .truncated = text.truncated,
             .special_text = text.special_text});
      turn.tell(worker.who, std::move(work));
    }
  }
}

messages::ActorLoad load_of_reward(const RunView& view, const WorkerFacts& worker) {
  return {.actor = worker.who.name,
          .policy_version = view.facts.versions.published.value,
          .load = std::to_string(view.facts.flow.ledger.held_by(worker.who.incarnation)) + "/" +
                  std::to_string(worker.capacity)};
}

void take(Turn& turn, const messages::RewardUp& up) {
  come_up(turn, messages::Role::kReward, up.from, up.capacity, "RewardUp");
}

void take(Turn& turn, const messages::RewardBack& back) {
  meet_again(turn, messages::Role::kReward, back.from, back.capacity, back.held,
             turn.config.reward_lease, "RewardBack");
}

void take(Turn& turn, const messages::GroupsScored& scored) {
  if (!turn.facts.workers.find(messages::Role::kReward, scored.from)) return;
  if (comes_too_early(turn, scored.from)) return;
  messages::ScoresKept kept;
  for (const messages::GroupScore& group : scored.groups) {
    kept.groups.push_back(group.group);
    if (const auto why = misfit(turn.view(), scored.from, group.group, group.attempt))
      return refuse(turn, scored.from, "GroupsScored: " + *why);
    take_scores(turn, scored.from, group);
  }
  extend_leases(turn, scored.from, turn.config.reward_lease);
  turn.tell(scored.from, std::move(kept));
  turn.wake();
}

void take(Turn& turn, const messages::TextsScored& scored) {
  if (!turn.facts.workers.find(messages::Role::kReward, scored.from)) return;
  for (const messages::TextScore& text : scored.scores)
    turn.seen.workers.troubles.judged(scored.from.name, text.score);
  keep_scores(turn, scored.evaluation, scored.from.name, scored.scores);
  turn.wake();
}

// Troubles that come late are of use too: they say why the actor ended.
void take(Turn& turn, messages::RewardTrouble trouble) {
  if (!turn.facts.workers.find(messages::Role::kReward, trouble.from) &&
      !has_ended(turn.facts, trouble.from))
    return;
  const std::string actor = trouble.from.name;
  const messages::RewardTrouble* const said =
      turn.seen.workers.troubles.take(std::move(trouble), turn.now);
  if (!said) return;
  turn.notify(
      messages::ExchangeEvent{turn.config.job, actor, text(*said), messages::EventLevel::kWarning});
  turn.wake();
}

}  // namespace tandem::exchange
