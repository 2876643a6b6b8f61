#include "actors/exchange/evaluation.h"

#include <gtest/gtest.h>

#include <set>

#include "runtime/base/rng.h"

namespace tandem::exchange {
namespace {

Evaluation evaluation_of(std::int32_t prompts, std::int32_t n = 1) {
  const EvaluationPlan plan{
      .prompts = prompts, .sampling = {.n = n, .temperature = 1}, .sources = {}};
  return {messages::EvaluationId{1}, EvaluationKind::kPeriodic, PolicyVersion{7}, plan};
}

std::vector<messages::EvaluationText> texts_of(const std::vector<std::int32_t>& indices,
                                               std::int32_t n = 1) {
  std::vector<messages::EvaluationText> texts;
  for (const std::int32_t index : indices)
    for (std::int32_t sample = 0; sample < n; ++sample)
      texts.push_back({.index = index, .sample = sample, .text = "t"});
  return texts;
}

std::vector<messages::TextScore> scores_of(const std::vector<messages::EvaluationText>& texts) {
  std::vector<messages::TextScore> scores;
  for (const messages::EvaluationText& text : texts)
    scores.push_back({text.index, text.sample, messages::Scored{static_cast<double>(text.index)}});
  return scores;
}

TEST(Evaluation, EveryPromptIsGeneratedAndScoredOnce) {
  Evaluation evaluation = evaluation_of(5);
  const auto some = evaluation.take_prompts("r/0", 3);
  const auto rest = evaluation.take_prompts("r/1", 9);
  EXPECT_EQ(some.size(), 3u);
  EXPECT_EQ(rest.size(), 2u);
  EXPECT_FALSE(evaluation.prompts_wait());
  evaluation.generated("r/0", texts_of(some), {});
  EXPECT_FALSE(evaluation.generated());
  EXPECT_FALSE(evaluation.held_by("r/0"));
  evaluation.generated("r/1", texts_of(rest), {});
  EXPECT_TRUE(evaluation.generated());
  const auto texts = evaluation.take_texts("w/0", 9);
  EXPECT_EQ(evaluation.scored("w/0", scores_of(texts)).size(), 5u);
  EXPECT_TRUE(evaluation.done());
  EXPECT_EQ(evaluation.figures().all.mean, 2.0);
  EXPECT_EQ(evaluation.figures().all.failed, 0);
}

TEST(Evaluation, InWhichEverythingFailsHasAReasonAndNoMean) {
  Evaluation evaluation = evaluation_of(3);
  const auto prompts = evaluation.take_prompts("r/0", 3);
  evaluation.generated("r/0", texts_of({0, 1}), {2});
  const auto texts = evaluation.take_texts("w/0", 9);
  evaluation.scored(
      "w/0", {{0, 0, messages::ScoreFailed{"it broke"}}, {1, 0, messages::ScoreFailed{"again"}}});
  EXPECT_TRUE(evaluation.done());
  EXPECT_EQ(evaluation.figures().all.mean, std::nullopt);
  EXPECT_EQ(evaluation.figures().all.failed, 3);
  EXPECT_NE(evaluation.failure().find("too long"), std::string::npos) << "the first failure";
}

TEST(Evaluation, WhatTheDeadHeldWaitsAgainAndTheirAnswersAreNotTaken) {
  Evaluation evaluation = evaluation_of(4);
  const auto lost = evaluation.take_prompts("r/0", 2);
  const auto kept = evaluation.take_prompts("r/1", 2);
  evaluation.actor_down("r/0");
  EXPECT_EQ(evaluation.prompts_waiting(), 2u);
  evaluation.generated("r/0", texts_of(lost), {});
  EXPECT_FALSE(evaluation.texts_wait());
  EXPECT_EQ(evaluation.take_prompts("r/1", 9), lost);
  evaluation.generated("r/1", texts_of(kept), {});
  const auto texts = evaluation.take_texts("w/0", 1);
  evaluation.actor_down("w/0");
  EXPECT_TRUE(evaluation.scored("w/0", scores_of(texts)).empty());
  EXPECT_EQ(evaluation.take_texts("w/1", 9).size(), 2u);
}

TEST(Evaluation, FailuresCountAndAreNoZeroes) {
  Evaluation evaluation = evaluation_of(4);
  const auto all = evaluation.take_prompts("r/0", 3);
  evaluation.generated("r/0", texts_of({all[0], all[1]}), {all[2]});
  evaluation.fail_waiting();
  const auto texts = evaluation.take_texts("w/0", 9);
  evaluation.scored("w/0", {{texts[0].index, 0, messages::Scored{3}},
                            {texts[1].index, 0, messages::ScoreFailed{"no"}}});
  EXPECT_TRUE(evaluation.done());
  EXPECT_EQ(evaluation.figures().all,
            (messages::RewardFigures{
                .mean = 3.0, .pass = {}, .scored = 1, .failed = 3, .mean_with_failures = 0.75}));
}

TEST(Evaluation, WithoutAScoreThereIsNoMean) {
  Evaluation evaluation = evaluation_of(2);
  evaluation.fail_waiting();
  EXPECT_TRUE(evaluation.done());
  EXPECT_FALSE(evaluation.figures().all.mean.has_value());
}

TEST(Evaluation, APromptIsGeneratedOnceAllItsCompletionsHaveCome) {
  Evaluation evaluation = evaluation_of(2, 3);
  evaluation.take_prompts("r/0", 2);
  auto texts = texts_of({0, 1}, 3);
  texts.push_back({.index = 0, .sample = 3, .text = "one too many"});
  const std::vector<messages::EvaluationText> first(texts.begin(), texts.begin() + 2);
  const std::vector<messages::EvaluationText> rest(texts.begin() + 2, texts.end());
  evaluation.generated("r/0", first, {});
  EXPECT_TRUE(evaluation.held_by("r/0"));
  evaluation.actor_down("r/0");
  EXPECT_EQ(evaluation.prompts_waiting(), 2u) << "prompt 0 lacks a completion";
  evaluation.take_prompts("r/1", 2);
  evaluation.generated("r/1", first, {});  // those of prompt 0 come again
  evaluation.generated("r/1", rest, {});
  EXPECT_TRUE(evaluation.generated());
  const auto taken = evaluation.take_texts("w/0", 100);
  EXPECT_EQ(taken.size(), 6u) << "each once";
  EXPECT_EQ(evaluation.scored("w/0", scores_of(taken)).size(), 6u);
  EXPECT_TRUE(evaluation.done());
  EXPECT_EQ(evaluation.figures().all.mean, 0.5);
}

TEST(Evaluation, OfAPromptThatFailsWhatHasComeIsScored) {
  Evaluation evaluation = evaluation_of(2, 4);
  evaluation.take_prompts("r/0", 2);
  evaluation.generated("r/0", {{.index = 1, .sample = 2, .text = "t"}}, {});
  evaluation.generated("r/0", {}, {1});
  evaluation.actor_down("r/0");
  evaluation.fail_waiting();
  EXPECT_FALSE(evaluation.done());
  evaluation.scored("w/0", scores_of(evaluation.take_texts("w/0", 9)));
  EXPECT_TRUE(evaluation.done());
  EXPECT_EQ(evaluation.figures().all.scored, 1);
  EXPECT_EQ(evaluation.figures().all.failed, 7);
}

// Whatever is taken, answered in parts, answered again or lost: each completion counts once in the
// end.
TEST(Evaluation, RandomDeathsLoseAndDoubleNothing) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    const auto prompts = static_cast<std::int32_t>(1 + rng.below(40));
    const auto n = static_cast<std::int32_t>(1 + rng.below(3));
    Evaluation evaluation = evaluation_of(prompts, n);
    std::map<std::string, std::vector<std::int32_t>> generating;
    std::map<std::string, std::vector<messages::EvaluationText>> scoring;
    for (int i = 0; i < 10'000 && !evaluation.done(); ++i) {
      const std::string rollout = "r/" + std::to_string(rng.below(3));
      const std::string reward = "w/" + std::to_string(rng.below(2));
      switch (rng.below(5)) {
        case 0: {
          const auto taken = evaluation.take_prompts(rollout, 1 + rng.below(6));
          generating[rollout].insert(generating[rollout].end(), taken.begin(), taken.end());
          break;
        }
        case 1: {
          auto texts = texts_of(generating[rollout], n);
          const bool torn = rng.below(3) == 0;
          if (torn) texts.resize(rng.below(texts.size() + 1));
          evaluation.generated(rollout, texts, {});
          if (torn) evaluation.actor_down(rollout);
          if (torn || rng.below(2) == 0) generating[rollout].clear();  // else it says it all again
          break;
        }
        case 2: {
          auto taken = evaluation.take_texts(reward, 1 + rng.below(6));
          for (messages::EvaluationText& text : taken) scoring[reward].push_back(std::move(text));
          break;
        }
        case 3:
          evaluation.scored(reward, scores_of(scoring[reward]));
          if (rng.below(2) == 0) scoring[reward].clear();
          break;
        default:
          if (rng.below(4) == 0) evaluation.actor_down(rng.below(2) == 0 ? rollout : reward);
          break;
      }
    }
    ASSERT_TRUE(evaluation.done());
    const messages::RewardFigures all = evaluation.figures().all;
    EXPECT_EQ(all.failed, 0);
    EXPECT_EQ(all.scored, std::int64_t{prompts} * n);
    EXPECT_EQ(all.mean, static_cast<double>(prompts - 1) / 2);
  }
}

}  // namespace
}  // namespace tandem::exchange
