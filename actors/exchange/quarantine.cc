#include "actors/exchange/quarantine.h"

#include <algorithm>

#include "actors/exchange/discards.h"
#include "actors/exchange/evaluation_suspects.h"
#include "actors/exchange/run_end.h"
#include "actors/exchange/samples.h"
#include "runtime/base/json.h"

namespace tandem::exchange {

namespace {

ExchangeRecord record_of(const RunView& view, GroupId group) {
  return view.config.train[view.config.prompt_at(view.facts.flow.entries.at(group).position)];
}

// The sample of a group that has no completion, and never will.
void write_poison_sample(Turn& turn, GroupId group, const std::string& why) {
  const ExchangeRecord record = record_of(turn.view(), group);
  nlohmann::json line{{"step", turn.facts.flow.ledger.next_commit().value + 1},
                      {"group", group.value},
                      {"prompt", record.prompt},
                      {"error", why}};
  add_record_fields(line, record.data, turn.config.record_keys);
  turn.send(WriteSample{dump_json(line)});
}

// Other groups of the prompt that nobody holds.
void discard_same_prompts(Turn& turn) {
  std::vector<GroupId> same;
  for (const auto& [due, group] : turn.facts.flow.ledger.queue(scheduler::GroupState::kAdmitted))
    if (is_quarantined(turn.view(), group)) same.push_back(group);
  for (const GroupId group : same) discard(turn, group, scheduler::DiscardReason::kPoisonPrompt);
}

// Without a prompt that is left, admission would replace groups for ever.
bool all_are_quarantined(const RunView& view) {
  return view.seen.poisoned.size() == view.config.train.size();
}

void quarantine_groups(Turn& turn, const std::vector<GroupId>& suspects, const std::string& cause) {
  for (const GroupId group : suspects) {
    if (!turn.facts.flow.suspects.is_guilty(group)) continue;  // as one that is discarded by now
    const std::string prompt = record_of(turn.view(), group).prompt;
    const std::string why = poison_text(turn.facts.flow.suspects.all().at(group), cause);
    write_poison_sample(turn, group, why);
    tell_quarantined(turn, "group " + std::to_string(group.value), why, prompt);
    turn.seen.poisoned.insert(turn.config.prompt_at(turn.facts.flow.entries.at(group).position));
    discard(turn, group, scheduler::DiscardReason::kPoisonPrompt);
    discard_same_prompts(turn);
    if (all_are_quarantined(turn.view()))
      return fail(turn, "every prompt is quarantined; the last: " + turn.seen.quarantined);
  }
}

}  // namespace

void remember_quarantined(Turn& turn) {
  for (const std::int64_t position : turn.facts.flow.poisoned)
    turn.seen.poisoned.insert(turn.config.prompt_at(position));
}

bool is_quarantined(const RunView& view, GroupId group) {
  if (view.seen.poisoned.empty()) return false;
  return view.seen.poisoned.contains(
      view.config.prompt_at(view.facts.flow.entries.at(group).position));
}

bool is_idle(const RunView& view, const WorkerFacts& rollout) {
  return view.facts.flow.ledger.held_by(rollout.who.incarnation) == 0 &&
         prompts_held(view, rollout.who.name).empty() &&
         !view.seen.workers.by_actor.at(rollout.who.name).may_evaluate;
}

bool tries_alone(const RunView& view, const WorkerFacts& rollout) {
  if (evaluates_alone(view, rollout.who.name)) return true;
  const scheduler::Suspects& suspects = view.facts.flow.suspects;
  if (suspects.all().empty()) return false;
  return std::ranges::any_of(
      view.facts.flow.ledger.leases_of(rollout.who.incarnation),
      [&](const scheduler::Lease& lease) { return suspects.is_isolated(lease.group); });
}

// Whether an engine that has outlived the exchange before evaluates as well is not known.
Suspected suspect(Turn& turn, const messages::ActorDown& down) {
  Suspected held;
  if (!turn.facts.workers.find(messages::Role::kRollout, down.who)) return held;
  const WorkerSeen& seen = turn.seen.workers.by_actor[down.who.name];
  if (!down.crashed && !seen.broke) return held;
  for (const scheduler::Lease& lease : turn.facts.flow.ledger.leases_of(down.who.incarnation))
    held.groups.push_back(lease.group);
  held.prompts = prompts_held(turn.view(), down.who.name);
  const bool alone =
      held.groups.size() + held.prompts.size() == 1 && !seen.away && !seen.may_evaluate;
  if (!held.groups.empty())
    turn.record(EngineCrashed{.who = down.who,
                              .cause = down.reason,
                              .groups = held.groups,
                              .alone = alone,
                              .worked = seen.generated});
  turn.seen.evaluation_suspects.crashed(
      {.actor = down.who.name, .held = held.prompts, .alone = alone, .worked = seen.generated});
  return held;
}

void quarantine(Turn& turn, const Suspected& suspects, const std::string& cause) {
  quarantine_prompts(turn, suspects.prompts, cause);
  quarantine_groups(turn, suspects.groups, cause);
}

std::string suspects_text(const RunView& view) {
  std::string text;
  const auto add = [&](const std::string& what) { text += (text.empty() ? "" : ", ") + what; };
  for (const GroupId group : view.facts.flow.suspects.isolated())
    add((text.empty() ? "group " : "") + std::to_string(group.value));
  for (const std::int32_t index : view.seen.evaluation_suspects.isolated())
    add(evaluation_prompt_text(index));
  return text;
}

}  // namespace tandem::exchange
