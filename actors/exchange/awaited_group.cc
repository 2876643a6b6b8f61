#include "actors/exchange/awaited_group.h"

#include <algorithm>
#include <string>
#include <utility>

#include "scheduler/fleet/wait_end.h"

namespace tandem::exchange {

using scheduler::GroupState;

namespace {

const WorkerFacts* holder_of(const RunView& view, const scheduler::GroupRecord& record) {
  for (const WorkerFacts* worker : view.facts.workers.all())
    if (record.lease && worker->who.incarnation == record.lease->holder) return worker;
  return nullptr;
}

// "3911 of at most 8192 tokens", where its rollout has told of it.
std::string progress_of(const RunView& view, const std::string& holder, GroupId group) {
  const auto& first = view.seen.workers.by_actor.at(holder).stats.first;
  if (!first || first->group != group) return "";
  return std::to_string(first->tokens) + " of at most " + std::to_string(first->tokens_max) +
         " tokens";
}

void add(std::string& text, const std::string& part) {
  if (!part.empty()) text += (text.empty() ? "" : "; ") + part;
}

// How long a rollout has said nothing, where that is longer than it ever takes.
std::string silence_of(const RunView& view, const std::string& holder) {
  constexpr Duration kLong = std::chrono::seconds(3);
  const auto& heard = view.seen.workers.by_actor.at(holder).stats_at;
  if (!heard || view.now - *heard < kLong) return "";
  return "it has said nothing for " +
         std::to_string(static_cast<std::int64_t>(seconds(view.now - *heard))) + " s";
}

}  // namespace

std::optional<GroupId> awaited_group(const RunView& view) {
  const GroupFlow& flow = view.facts.flow;
  if (flow.fixed)
    if (const auto group = flow.fixed->awaited(flow.ledger.budget_state().next_step)) return group;
  std::optional<std::pair<StepId, GroupId>> first;
  for (const GroupState state : {GroupState::kRolling, GroupState::kGenerated, GroupState::kScoring,
                                 GroupState::kAdmitted}) {
    const auto& queue = flow.ledger.queue(state);
    if (!queue.empty() && (!first || *queue.begin() < *first)) first = *queue.begin();
  }
  if (!first) return std::nullopt;
  return first->second;
}

messages::Wait wait_of_group(const RunView& view, GroupId group) {
  const scheduler::GroupRecord& record = *view.facts.flow.ledger.find(group);
  messages::Wait wait{.who = "group " + std::to_string(group.value)};
  wait.since_s = seconds(view.now - view.seen.groups.at(group).moved);
  // A holder that has not claimed its lease from this exchange yet is given up as one that is away.
  if (record.lease)
    wait.deadline_s = seconds(
        (record.lease->epoch == view.config.epoch ? record.lease->deadline : view.seen.away_until) -
        view.now);
  else
    wait.ended_by = words(scheduler::EndedBy::kFree);
  const WorkerFacts* holder = holder_of(view, record);
  const bool generates =
      record.state == GroupState::kAdmitted || record.state == GroupState::kRolling;
  if (holder) {
    const std::string& name = holder->who.name;
    wait.waits_for = name + (generates ? " to generate it" : " to score it");
    if (generates) add(wait.detail, progress_of(view, name, group));
    if (generates) add(wait.detail, silence_of(view, name));
  } else {
    wait.waits_for = generates ? "a rollout that takes it" : "a reward actor that takes it";
  }
  if (record.due) add(wait.detail, "due in step " + std::to_string(record.due->value));
  return wait;
}

}  // namespace tandem::exchange
