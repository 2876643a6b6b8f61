// What an inference server answers to a rollout or to a reward: completions, scores of a probe,
// figures, a judge's words. Checked: SV-1; a score is finite, of each token but the first; figures
// are within their limit; a judge's score is a share, or there is a reason.
#include <algorithm>
#include <cmath>

#include "actors/reward/http_verifier.h"
#include "actors/reward/judge_form.h"
#include "actors/rollout/external/dialect.h"
#include "actors/rollout/external/served_answer.h"
#include "runtime/base/check.h"
#include "runtime/base/json.h"
#include "runtime/base/text.h"
#include "tests/actors/rollout/engine_builder.h"
#include "tests/fuzz/fuzz_target.h"

namespace tandem::fuzz {
namespace {

using namespace rollout;

void completions(const Dialect& dialect, const std::string& body) {
  static const TinyModel model;
  static const EngineConfig config = tiny_engine_config();
  static const StopRules stop = make_stop_rules(config, model.config()).value();
  static const std::map<std::string, PolicyVersion> versions{{"us-3", {3}}, {"us-4", {4}}};
  const auto answer = dialect.read_generated(body);
  if (!answer) return CHECK(!answer.error().message.empty());
  const auto vocabulary = static_cast<std::int32_t>(model.config().vocab_size);
  // As if it had been asked for just this many.
  const auto trajectories =
      trajectories_of(*answer,
                      {.id = answer->id,
                       .prompt = answer->prompt,
                       .n = static_cast<std::int32_t>(answer->completions.size()),
                       .sent_under = {3}},
                      {.stop = stop,
                       .tokenizer = model.tokenizer(),
                       .vocabulary = vocabulary,
                       .versions = versions});
  if (!trajectories) return CHECK(!trajectories.error().message.empty());
  for (const messages::Trajectory& trajectory : *trajectories) {
    CHECK(trajectory.tokens.size() == trajectory.logprobs.size());
    CHECK(std::ranges::all_of(trajectory.tokens,
                              [&](auto token) { return token >= 0 && token < vocabulary; }));
    CHECK(std::ranges::all_of(trajectory.logprobs, [](float one) { return std::isfinite(one); }));
  }
}

void judged(const Result<std::vector<reward::RewardAnswer>>& answers) {
  if (!answers) return CHECK(!answers.error().message.empty());
  for (const reward::RewardAnswer& answer : *answers)
    if (const auto* score = std::get_if<double>(&answer.score))
      CHECK(std::isfinite(*score));
    else
      CHECK(!std::get<std::string>(answer.score).empty());
}

void judge_says(const std::string& words) {
  static const reward::HttpForm judge = reward::judge_form({}).value();
  judged(judge.answers(words, 1));
  const auto answers =
      judge.answers(dump_json({{"choices", {{{"message", {{"content", valid_utf8(words)}}}}}}}), 1);
  judged(answers);
  CHECK(answers && answers->size() == 1);
  if (const auto* score = std::get_if<double>(&answers->front().score)) {
    CHECK(*score >= 0 && *score <= 1);
    CHECK(answers->front().extra.size() <= messages::kExtraBytesMax);
  }
}

}  // namespace

void engine_answer(std::string_view input) {
  Pieces pieces(input);
  const std::uint8_t which = pieces.byte();
  const std::string body(pieces.rest());
  for (const EngineName name : {EngineName::kVllm, EngineName::kSglang}) {
    const Dialect& dialect = dialect_of(name);
    completions(dialect, body);
    const std::vector<std::int32_t> tokens{4, 5, 6, 7};
    if (const auto scores = dialect.read_scores(body, tokens)) {
      CHECK(scores->size() == tokens.size() - 1);
      CHECK(std::ranges::all_of(*scores, [](float score) { return std::isfinite(score); }));
    }
    if (const auto figures = read_metrics(body, dialect.metrics))
      CHECK(figures->generation_tokens >= 0 && figures->generation_tokens <= kFigureMax);
  }
  if (const auto ranks = vllm_dialect().read_ranks(body)) CHECK(*ranks > 0);
  judged(reward::openrlhf_form().answers(body, which));
  judge_says(body);
}

}  // namespace tandem::fuzz
