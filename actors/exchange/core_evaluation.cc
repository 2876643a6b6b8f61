// Evaluations of an exchange: which rollouts generate their prompts, which rewards score the
// completions, and which figures stay of an evaluation that is over. Evaluations are outside the
// ledger: no group of theirs is admitted, leased or trained.
#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

#include "actors/exchange/evaluation_json.h"
#include "actors/exchange/exchange_core.h"
#include "runtime/base/json.h"

namespace tandem::actors {
namespace {

constexpr std::size_t kEvaluationChunk = 256;  // completions or texts per message
// Of each evaluation, in samples.jsonl.
constexpr std::int32_t kPromptsShown = 32;
constexpr std::int32_t kSamplesShown = 4;  // of each of these prompts, besides the greedy one

std::string exact_text(double value) {  // what strtod reads back bit for bit
  char text[32];
  const auto end = std::to_chars(std::begin(text), std::end(text), value).ptr;
  return {text, end};
}

}  // namespace

void ExchangeCore::start_evaluation(EvaluationKind kind, PolicyVersion version) {
  if (config_.validation.empty()) return;
  const bool known =
      statistics_.evaluations.contains(name(kind));  // to an earlier incarnation of the run
  if (kind != EvaluationKind::kPeriodic && (known || !evaluations_.once.insert(kind).second))
    return;
  evaluations_.running.emplace_back(EvaluationId{++evaluations_.last}, kind, version,
                                    config_.evaluation);
}

// Announces new versions to rollouts and hands evaluations out. A rollout that has not moved on
// meets Evaluate(v) after NewVersion(v) and before any later one; one that has goes back to v,
// which the publisher retains. Where a publisher's end has lost v, the prompts fail.
void ExchangeCore::run_evaluations() {
  for (Evaluation& evaluation : evaluations_.running) {
    const PolicyVersion version = evaluation.version();
    std::vector<Worker*> able;
    for (auto& [name, worker] : workers_.rollouts)
      if (!worker.draining && (version >= versions_.oldest_retained ||
                               (worker.installed == version && worker.announced == version)))
        able.push_back(&worker);
    if (able.empty() && !workers_.rollouts.empty() && version < versions_.oldest_retained &&
        evaluation.prompts_wait()) {
      note({.kind = "evaluation_incomplete",
            .version = version.value,
            .detail = std::to_string(evaluation.prompts_waiting()) +
                      " prompts: no rollout has this version, nor has the publisher"});
      evaluation.fail_waiting();
    }
    for (std::size_t left = able.size(); left > 0 && evaluation.prompts_wait(); --left)
      evaluate_on(evaluation, *able[left - 1], (evaluation.prompts_waiting() + left - 1) / left);
    score_texts(evaluation);
    if (evaluation.done()) evaluation_done(evaluation);
  }
  std::erase_if(evaluations_.running,
                [](const Evaluation& evaluation) { return evaluation.done(); });
  for (auto& [name, worker] : workers_.rollouts)
    if (worker.announced < versions_.published) announce(worker, versions_.published);
}

void ExchangeCore::evaluate_on(Evaluation& evaluation, Worker& rollout, std::size_t prompts) {
  if (rollout.announced < evaluation.version()) announce(rollout, evaluation.version());
  const EvaluationPlan& plan = config_.evaluation;
  const auto completions = static_cast<std::size_t>(completions_of(plan.sampling));
  const std::size_t at_once = std::max<std::size_t>(1, kEvaluationChunk / completions);
  while (prompts > 0) {
    const auto indices = evaluation.take_prompts(rollout.address.name, std::min(prompts, at_once));
    prompts -= indices.size();
    Evaluate work{.evaluation = evaluation.id(),
                  .version = evaluation.version(),
                  .sampling = plan.sampling,
                  .prompts = {}};
    for (const std::int32_t index : indices)
      work.prompts.push_back({index, config_.validation[static_cast<std::size_t>(index)].prompt,
                              prompt_seed(plan, index)});
    tell_rollout(rollout.address, std::move(work));
  }
}

void ExchangeCore::score_texts(Evaluation& evaluation) {
  for (auto& [name, worker] : workers_.rewards) {
    if (worker.draining) continue;
    while (evaluation.texts_wait()) {
      ScoreTexts work{.evaluation = evaluation.id()};
      for (EvaluationText& text : evaluation.take_texts(name, kEvaluationChunk))
        work.texts.push_back({.index = text.index,
                              .sample = text.sample,
                              .data = config_.validation[static_cast<std::size_t>(text.index)].data,
                              .text = std::move(text.text),
                              .truncated = text.truncated,
                              .special_text = text.special_text});
      tell_reward(worker.address, std::move(work));
    }
  }
}

void ExchangeCore::evaluation_done(const Evaluation& evaluation) {
  const char* const kind = name(evaluation.kind());
  const EvaluationFigures figures = evaluation.figures();
  const RewardFigures& all = figures.all;
  statistics_.add_evaluation(kind, figures);
  if (!all.mean) {
    const std::string what =
        completions_of(config_.evaluation.sampling) > 1 ? "completions" : "prompts";
    statistics_.evaluation_failure = "evaluation " + std::string(kind) + ": all " +
                                     std::to_string(all.failed) + " " + what + " failed; " +
                                     workers_.troubles.explained(evaluation.failure());
    notify(ExchangeEvent{config_.job, config_.job, statistics_.evaluation_failure});
  }
  std::string detail = std::string(kind) + "=" + (all.mean ? exact_text(*all.mean) : "none") +
                       " scored=" + std::to_string(all.scored) +
                       " failed=" + std::to_string(all.failed);
  if (has_more_than_mean(figures)) detail += " figures=" + dump_json(figures_json(figures));
  note({.kind = "evaluated", .version = evaluation.version().value, .detail = std::move(detail)});
}

// Some of each evaluation, and every failure.
void ExchangeCore::write_evaluation_sample(const Evaluation& of, const Evaluation::Judged& judged) {
  const auto* failure = std::get_if<ScoreFailed>(&judged.score);
  const EvaluationText& text = judged.text;
  const EvaluationPlan& plan = config_.evaluation;
  const bool greedy_beside = text.sample == plan.sampling.n;
  const bool shown = text.index < kPromptsShown && (text.sample < kSamplesShown || greedy_beside);
  if (!failure && !shown) return;
  const auto index = static_cast<std::size_t>(text.index);
  nlohmann::json line{{"eval", name(of.kind())},
                      {"step", of.version().value},
                      {"prompt", config_.validation[index].prompt},
                      {"completion", text.text},
                      {"sample", greedy_beside ? nlohmann::json() : nlohmann::json(text.sample)},
                      {"greedy", is_greedy(plan.sampling, text.sample)},
                      {"versions", {of.version().value}},
                      {"finish_reason", text.truncated ? "length" : "stop"}};
  if (!plan.sources.of_prompt.empty() && plan.sources.of_prompt[index])
    line["data_source"] = plan.sources.names[*plan.sources.of_prompt[index]];
  if (failure)
    line["error"] = failure->reason;
  else
    line["reward"] = std::get<Scored>(judged.score).value;
  effects_.push_back(WriteSample{dump_json(line)});
}

}  // namespace tandem::actors
