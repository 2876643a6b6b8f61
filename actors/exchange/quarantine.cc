#include "actors/exchange/quarantine.h"

#include <algorithm>

#include "actors/exchange/discards.h"
#include "actors/exchange/run_end.h"
#include "actors/exchange/samples.h"
#include "runtime/base/json.h"

namespace tandem::exchange {

namespace {

constexpr std::size_t kPromptShown = 200;  // bytes of a prompt in an event

bool evaluates(const RunView& view, const WorkerFacts& rollout) {
  return std::ranges::any_of(view.seen.evaluations, [&](const Evaluation& evaluation) {
    return evaluation.held_by(rollout.who.name);
  });
}

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
         !evaluates(view, rollout) && !view.seen.workers.by_actor.at(rollout.who.name).may_evaluate;
}

bool tries_alone(const RunFacts& facts, const WorkerFacts& rollout) {
  if (facts.flow.suspects.all().empty()) return false;
  return std::ranges::any_of(
      facts.flow.ledger.leases_of(rollout.who.incarnation),
      [&](const scheduler::Lease& lease) { return facts.flow.suspects.is_isolated(lease.group); });
}

// Whether an engine that has outlived the exchange before evaluates as well is not known.
std::vector<GroupId> suspect(Turn& turn, const messages::ActorDown& down) {
  std::vector<GroupId> groups;
  const WorkerFacts* const rollout = turn.facts.workers.find(messages::Role::kRollout, down.who);
  if (!rollout) return groups;
  const WorkerSeen& seen = turn.seen.workers.by_actor[down.who.name];
  if (!down.crashed && !seen.broke) return groups;
  for (const scheduler::Lease& lease : turn.facts.flow.ledger.leases_of(down.who.incarnation))
    groups.push_back(lease.group);
  if (groups.empty()) return groups;
  const bool alone =
      groups.size() == 1 && !evaluates(turn.view(), *rollout) && !seen.away && !seen.may_evaluate;
  turn.record(EngineCrashed{.who = down.who,
                            .cause = down.reason,
                            .groups = groups,
                            .alone = alone,
                            .worked = seen.generated});
  return groups;
}

void quarantine(Turn& turn, const std::vector<GroupId>& suspects, const std::string& cause) {
  for (const GroupId group : suspects) {
    if (!turn.facts.flow.suspects.is_guilty(group)) continue;  // as one that is discarded by now
    const scheduler::Suspicion suspicion = turn.facts.flow.suspects.all().at(group);
    const std::string prompt = record_of(turn.view(), group).prompt;
    const std::string why = "poison_prompt: it was in " + std::to_string(suspicion.crashes) +
                            " crashes of the engines that generated it, " +
                            std::to_string(suspicion.alone) +
                            " of them alone, and they work for other prompts; the last: " + cause;
    write_poison_sample(turn, group, why);
    turn.say("group " + std::to_string(group.value) + " is quarantined as " + why +
                 "; its prompt: " + dump_json(prompt.substr(0, kPromptShown)),
             messages::EventLevel::kWarning);
    turn.seen.poisoned.insert(turn.config.prompt_at(turn.facts.flow.entries.at(group).position));
    discard(turn, group, scheduler::DiscardReason::kPoisonPrompt);
    turn.seen.quarantined = "group " + std::to_string(group.value) + ", " + why;
    discard_same_prompts(turn);
    if (all_are_quarantined(turn.view()))
      return fail(turn, "every prompt is quarantined; the last: " + turn.seen.quarantined);
  }
}

std::string suspects_text(const RunView& view) {
  std::string text;
  for (const GroupId group : view.facts.flow.suspects.isolated())
    text += (text.empty() ? "group " : ", ") + std::to_string(group.value);
  return text;
}

}  // namespace tandem::exchange
