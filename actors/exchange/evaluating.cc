// A rollout that has not moved on meets Evaluate(v) after NewVersion(v) and before any later
// version; one that has moved on goes back to v, which the publisher retains. Where a publisher's
// end has lost v, the prompts fail: an evaluation is then incomplete, and says so.
#include "actors/exchange/evaluating.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "actors/exchange/checkpoints.h"
#include "actors/exchange/checks.h"
#include "actors/exchange/evaluation_json.h"
#include "actors/exchange/evaluation_parts.h"
#include "actors/exchange/evaluation_suspects.h"
#include "actors/exchange/journal_rows.h"
#include "actors/exchange/publications.h"
#include "actors/exchange/quarantine.h"
#include "actors/exchange/run_end.h"
#include "actors/exchange/samples.h"
#include "actors/exchange/step_figures.h"
#include "runtime/base/check.h"
#include "runtime/base/json.h"

namespace tandem::exchange {

namespace {

// The record of an evaluation in metrics.jsonl: it stands at its own version, and is no step's.
void write_record(Turn& turn, const Evaluation& evaluation,
                  const messages::EvaluationFigures& figures) {
  nlohmann::json line{{"eval", name(evaluation.kind())}, {"step", evaluation.version().value}};
  add_metrics(line, figures);
  turn.send(WriteMetrics{dump_json(line)});
}

std::string short_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

// A failure is in no mean; people read beside it what it would make of the mean.
std::string ended_text(const Turn& turn, const Evaluation& evaluation,
                       const messages::RewardFigures& figures) {
  std::string text = std::string("evaluation ") + name(evaluation.kind()) + " of version " +
                     std::to_string(evaluation.version().value) + ": mean reward " +
                     short_number(*figures.mean) + " over " + std::to_string(figures.scored) +
                     " completions, " + std::to_string(figures.failed) + " failed";
  if (figures.mean_with_failures)
    text += "; with " + short_number(turn.config.evaluation.failure_reward) +
            " for each failure the mean is " + short_number(*figures.mean_with_failures);
  return text;
}

// Told once: the next evaluations hardly have the key either.
std::string no_best_key_text(const Evaluation& evaluation,
                             const messages::EvaluationFigures& figures, const std::string& key) {
  nlohmann::json line;
  add_metrics(line, figures);
  std::string means;
  for (const auto& [name, value] : line.items())
    if (name.ends_with("/mean")) means += (means.empty() ? "`" : ", `") + name + "`";
  return "evaluation " + std::string(name(evaluation.kind())) + " has no `" + key +
         "`, by which learner.keep_best looks for the best checkpoint: without it none is the best "
         "(it has " +
         means + ")";
}

void end_evaluation(Turn& turn, const Evaluation& evaluation) {
  const messages::EvaluationFigures figures = evaluation.figures();
  RunStatistics& statistics = turn.seen.statistics;
  const std::string& best_key = turn.config.best.key;
  const bool is_best = statistics.add_evaluation({evaluation.kind(), evaluation.version(), figures},
                                                 turn.config.best);
  if (is_best) name_best(turn);
  if (!best_key.empty() && figures.all.mean && !figure_of(figures, best_key) &&
      !std::exchange(turn.seen.best_key_missed, true))
    turn.say(no_best_key_text(evaluation, figures, best_key), messages::EventLevel::kWarning);
  write_record(turn, evaluation, figures);
  if (const auto& name = evaluation.extra_left_out()) turn.seen.extra_keys.leave_out(*name);
  tell_of_extras(turn);
  if (figures.all.mean) {
    turn.say(ended_text(turn, evaluation, figures.all), level_of(figures.all));
  } else {
    const std::string what =
        completions_of(turn.config.evaluation.sampling) > 1 ? "completions" : "prompts";
    statistics.evaluation_failure = "evaluation " + std::string(name(evaluation.kind())) +
                                    ": all " + std::to_string(figures.all.failed) + " " + what +
                                    " failed; " +
                                    turn.seen.workers.troubles.explained(evaluation.failure());
    turn.say(statistics.evaluation_failure, messages::EventLevel::kError);
    if (turn.seen.workers.troubles.never_worked()) fail_for_reward(turn, evaluation.failure());
  }
  turn.record(EvaluationEnded{.evaluation = evaluation.id(),
                              .kind = evaluation.kind(),
                              .version = evaluation.version(),
                              .all = figures.all,
                              .sources = {figures.sources.begin(), figures.sources.end()}});
}

// Writes samples of some completions of each evaluation, and of every failure.
void write_sample(Turn& turn, const Evaluation& of, const Evaluation::Judged& judged) {
  const auto* failure = std::get_if<messages::ScoreFailed>(&judged.score);
  const messages::EvaluationText& text = judged.text;
  const EvaluationPlan& plan = turn.config.evaluation;
  const bool greedy_beside = text.sample == plan.sampling.n;
  // The completions count on from prompt to prompt.
  const std::int64_t number =
      std::int64_t{text.index} * completions_of(plan.sampling) + text.sample;
  const auto& limit = turn.config.samples.evaluation;
  if (!failure && limit && number >= *limit) return;
  const auto index = static_cast<std::size_t>(text.index);
  nlohmann::json line{{"eval", name(of.kind())},
                      {"step", of.version().value},
                      {"prompt", turn.config.validation[index].prompt},
                      {"completion", text.text},
                      {"sample", greedy_beside ? nlohmann::json() : nlohmann::json(text.sample)},
                      {"greedy", is_greedy(plan.sampling, text.sample)},
                      {"versions", {of.version().value}},
                      {"finish_reason", text.truncated ? "length" : "stop"}};
  add_record_fields(line, turn.config.validation[index].data, turn.config.record_keys);
  if (!plan.sources.of_prompt.empty() && plan.sources.of_prompt[index])
    line["data_source"] = plan.sources.names[*plan.sources.of_prompt[index]];
  if (failure) {
    line["error"] = failure->reason;
  } else {
    const auto& scored = std::get<messages::Scored>(judged.score);
    line["reward"] = scored.value;
    add_extra(line, scored.extra);
  }
  turn.send(WriteSample{dump_json(line)});
}

// `before`: the prompts that the rollout held before its answer.
void note_generated(Turn& turn, const Evaluation& evaluation, const messages::Evaluated& answer,
                    const std::set<std::int32_t>& before) {
  const std::set<std::int32_t> left = evaluation.prompts_of(answer.from.name);
  bool worked = false;
  for (const std::int32_t index : before) {
    if (left.contains(index)) continue;
    turn.seen.evaluation_suspects.forget(index);
    worked = worked || std::ranges::find(answer.unservable, index) == answer.unservable.end();
  }
  if (!worked) return;
  turn.seen.workers.by_actor[answer.from.name].generated = true;
  turn.seen.evaluation_suspects.worked(answer.from.name);
}

// An idle rollout that can generate this version. One whose engine has worked already is preferred.
const WorkerFacts* idle_rollout(const RunView& view, const Evaluation& evaluation) {
  const WorkerFacts* found = nullptr;
  for (const auto& [name, rollout] : view.facts.workers.rollouts()) {
    if (!can_evaluate(view, evaluation, rollout) || !is_idle(view, rollout)) continue;
    if (!found || (has_worked(view, rollout) && !has_worked(view, *found))) found = &rollout;
  }
  return found;
}

}  // namespace

void start_evaluation(Turn& turn, EvaluationKind kind, PolicyVersion version) {
  const EvaluationFacts& facts = turn.facts.evaluations;
  if (turn.config.validation.empty() || facts.once.contains(kind)) return;
  const bool before = kind == EvaluationKind::kBefore || kind == EvaluationKind::kAfterWarmStart;
  if (before && !turn.config.val_before_train) return;
  const messages::EvaluationId id{facts.last.value + 1};
  turn.record(EvaluationBegan{id, kind, version});
  turn.seen.evaluations.emplace_back(id, kind, version, turn.config.evaluation, turn.now);
}

void evaluate_on(Turn& turn, Evaluation& evaluation, const ActorId& rollout, std::size_t prompts,
                 const Evaluation::MayHave& may) {
  if (prompts == 0) return;
  WorkersSeen& workers = turn.seen.workers;
  if (!has_part(turn.view(), rollout.name)) workers.by_actor[rollout.name].begin_part(turn.now);
  if (!workers.parts_due) workers.parts_due = turn.now + turn.config.rollout_lease / kPartLooks;
  if (turn.seen.workers.by_actor[rollout.name].announced < evaluation.version())
    announce(turn, rollout, evaluation.version());
  const EvaluationPlan& plan = turn.config.evaluation;
  const auto completions = static_cast<std::size_t>(completions_of(plan.sampling));
  const std::size_t at_once = std::max<std::size_t>(1, kEvaluationChunk / completions);
  while (prompts > 0) {
    const auto indices = evaluation.take_prompts(rollout.name, std::min(prompts, at_once), may);
    if (indices.empty()) return;
    prompts -= indices.size();
    messages::Evaluate work{.evaluation = evaluation.id(),
                            .version = evaluation.version(),
                            .sampling = plan.sampling,
                            .prompts = {}};
    for (const std::int32_t index : indices)
      work.prompts.push_back({index, turn.config.validation[static_cast<std::size_t>(index)].prompt,
                              prompt_seed(plan, index)});
    turn.tell(rollout, std::move(work));
  }
}

void evaluate_by_rollouts(Turn& turn, Evaluation& evaluation) {
  for (const auto& [index, why] : turn.seen.poisoned_prompts) evaluation.fail_waiting(index, why);
  const PolicyVersion version = evaluation.version();
  const std::optional<std::string> kept = kept_for_trial(turn.view());
  std::vector<ActorId> able;
  bool more_may_be = turn.facts.workers.rollouts().empty();
  for (const auto& [name, worker] : turn.facts.workers.rollouts()) {
    if (!is_here(turn.view(), worker.who) || tries_alone(turn.view(), worker) || name == kept)
      more_may_be = true;
    else if (can_evaluate(turn.view(), evaluation, worker))
      able.push_back(worker.who);
  }
  if (able.empty() && !more_may_be && version < turn.facts.versions.oldest_retained &&
      evaluation.prompts_wait()) {
    turn.record(
        EvaluationIncomplete{version, static_cast<std::int64_t>(evaluation.prompts_waiting())});
    evaluation.fail_waiting();
  }
  const auto& suspects = turn.seen.evaluation_suspects;
  for (std::size_t left = able.size(); left > 0 && evaluation.prompts_wait(); --left) {
    const ActorId& rollout = able[left - 1];
    std::size_t share = (evaluation.prompts_waiting() + left - 1) / left;
    if (!suspects.all().empty()) {
      const std::size_t held = prompts_held(turn.view(), rollout.name).size();
      share = std::min(share, kSuspectsAtOnce - std::min(kSuspectsAtOnce, held));
    }
    evaluate_on(turn, evaluation, rollout, share,
                [&](std::int32_t index) { return !suspects.is_isolated(index); });
  }
}

void try_prompts_alone(Turn& turn) {
  for (const std::int32_t index : turn.seen.evaluation_suspects.isolated()) {
    for (Evaluation& evaluation : turn.seen.evaluations) {
      if (!evaluation.prompt_waits(index)) continue;
      const WorkerFacts* const rollout = idle_rollout(turn.view(), evaluation);
      if (rollout)
        evaluate_on(turn, evaluation, rollout->who, 1,
                    [index](std::int32_t other) { return other == index; });
    }
  }
}

void run_evaluations(Turn& turn) {
  for (Evaluation& evaluation : turn.seen.evaluations) {
    for (const WorkerRole& role : turn.roles)
      if (role.evaluate) role.evaluate(turn, evaluation);
    if (evaluation.done()) end_evaluation(turn, evaluation);
  }
  std::erase_if(turn.seen.evaluations,
                [](const Evaluation& evaluation) { return evaluation.done(); });
  // Both are in the order of names: a look-up for each rollout would cost more than all else here.
  auto seen = turn.seen.workers.by_actor.begin();
  for (const auto& [name, worker] : turn.facts.workers.rollouts()) {
    while (seen != turn.seen.workers.by_actor.end() && seen->first < name) ++seen;
    CHECK(seen != turn.seen.workers.by_actor.end() && seen->first == name);
    if (!seen->second.away && seen->second.announced < turn.facts.versions.published)
      announce(turn, worker.who, turn.facts.versions.published);
  }
}

void take(Turn& turn, messages::Evaluated evaluated) {
  if (!turn.facts.workers.find(messages::Role::kRollout, evaluated.from)) return;
  if (comes_too_early(turn, evaluated.from)) return;
  WorkerSeen& worker = turn.seen.workers.by_actor[evaluated.from.name];
  worker.worked = turn.now;
  worker.begin_part(turn.now);
  for (Evaluation& evaluation : turn.seen.evaluations) {
    if (evaluation.id() != evaluated.evaluation) continue;
    if (!evaluated.unservable.empty() && evaluation.version() < turn.facts.versions.oldest_retained)
      turn.record(EvaluationIncomplete{evaluation.version(), std::ssize(evaluated.unservable)});
    const std::set<std::int32_t> before = evaluation.prompts_of(evaluated.from.name);
    evaluation.generated(evaluated.from.name, std::move(evaluated.completions),
                         evaluated.unservable);
    note_generated(turn, evaluation, evaluated, before);
    turn.seen.progressed = turn.now;
    break;
  }
  turn.wake();
}

void keep_scores(Turn& turn, messages::EvaluationId id, const std::string& actor,
                 const std::vector<messages::TextScore>& scores) {
  for (Evaluation& evaluation : turn.seen.evaluations) {
    if (evaluation.id() != id) continue;
    for (const Evaluation::Judged& judged : evaluation.scored(actor, scores))
      write_sample(turn, evaluation, judged);
  }
}

}  // namespace tandem::exchange
