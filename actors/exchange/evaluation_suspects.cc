#include "actors/exchange/evaluation_suspects.h"

#include <algorithm>

#include "actors/exchange/checks.h"
#include "actors/exchange/samples.h"
#include "runtime/base/json.h"

namespace tandem::exchange {

namespace {

constexpr std::size_t kPromptShown = 200;  // bytes of a prompt in an event

bool trial_waits(const RunView& view, const Evaluation& evaluation) {
  return std::ranges::any_of(view.seen.evaluation_suspects.isolated(),
                             [&](std::int32_t index) { return evaluation.prompt_waits(index); });
}

// The sample of a prompt that has no completion, and never will.
void write_poison_sample(Turn& turn, std::int32_t index, const std::string& why) {
  const ExchangeRecord record = turn.config.validation[static_cast<std::size_t>(index)];
  for (const Evaluation& evaluation : turn.seen.evaluations) {
    if (!evaluation.prompt_waits(index)) continue;
    nlohmann::json line{{"eval", name(evaluation.kind())},
                        {"step", evaluation.version().value},
                        {"prompt", record.prompt},
                        {"error", why}};
    add_record_fields(line, record.data, turn.config.record_keys);
    turn.send(WriteSample{dump_json(line)});
  }
}

}  // namespace

bool can_evaluate(const RunView& view, const Evaluation& evaluation, const WorkerFacts& rollout) {
  const PolicyVersion version = evaluation.version();
  return is_here(view, rollout.who) && !rollout.draining &&
         (version >= view.facts.versions.oldest_retained ||
          (rollout.installed == version &&
           view.seen.workers.by_actor.at(rollout.who.name).announced == version));
}

bool has_worked(const RunView& view, const WorkerFacts& rollout) {
  return view.seen.workers.by_actor.at(rollout.who.name).generated;
}

std::vector<std::int32_t> prompts_held(const RunView& view, const std::string& rollout) {
  std::set<std::int32_t> held;
  for (const Evaluation& evaluation : view.seen.evaluations)
    held.merge(evaluation.prompts_of(rollout));
  return {held.begin(), held.end()};
}

bool evaluates_alone(const RunView& view, const std::string& rollout) {
  const auto& suspects = view.seen.evaluation_suspects;
  if (suspects.all().empty()) return false;
  return std::ranges::any_of(prompts_held(view, rollout),
                             [&](std::int32_t index) { return suspects.is_isolated(index); });
}

std::optional<std::string> kept_for_trial(const RunView& view) {
  if (view.seen.evaluation_suspects.all().empty()) return std::nullopt;
  for (const Evaluation& evaluation : view.seen.evaluations) {
    if (!trial_waits(view, evaluation)) continue;
    for (const auto& [name, rollout] : view.facts.workers.rollouts())
      if (can_evaluate(view, evaluation, rollout) && has_worked(view, rollout)) return name;
  }
  return std::nullopt;
}

void quarantine_prompts(Turn& turn, const std::vector<std::int32_t>& suspects,
                        const std::string& cause) {
  for (const std::int32_t index : suspects) {
    if (!turn.seen.evaluation_suspects.is_guilty(index)) continue;
    const std::string why = poison_text(turn.seen.evaluation_suspects.all().at(index), cause);
    write_poison_sample(turn, index, why);
    tell_quarantined(turn, evaluation_prompt_text(index), why,
                     turn.config.validation[static_cast<std::size_t>(index)].prompt);
    turn.seen.poisoned_prompts[index] = why;
    turn.seen.evaluation_suspects.forget(index);
  }
}

std::string poison_text(const scheduler::Suspicion& suspicion, const std::string& cause) {
  return "poison_prompt: it was in " + std::to_string(suspicion.crashes) +
         " crashes or hangs of the engines that generated it, " + std::to_string(suspicion.alone) +
         " of them alone, and they work for other prompts; the last: " + cause;
}

std::string evaluation_prompt_text(std::int32_t index) {
  return "prompt " + std::to_string(index) + " of the evaluations";
}

void tell_quarantined(Turn& turn, const std::string& what, const std::string& why,
                      const std::string& prompt) {
  turn.say(what + " is quarantined as " + why +
               "; its prompt: " + dump_json(prompt.substr(0, kPromptShown)),
           messages::EventLevel::kWarning);
  turn.seen.quarantined = what + ", " + why;
}

}  // namespace tandem::exchange
