#include "actors/exchange/evaluation_means.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "runtime/base/rng.h"

namespace tandem::exchange {
namespace {

EvaluationPlan plan_of(std::int32_t prompts, std::int32_t n, bool greedy = false) {
  return {.prompts = prompts,
          .sampling = {.n = n, .temperature = 1, .greedy = greedy},
          .seed = 5,
          .sources = {}};
}

// The share of all k-element subsets of s samples that hold one of the first c.
double brute_force(std::int32_t k, SampleCount samples) {
  std::int64_t subsets = 0, with_success = 0;
  for (std::uint32_t mask = 0; mask < 1u << samples.scored; ++mask) {
    if (std::popcount(mask) != k) continue;
    ++subsets;
    with_success += (mask & ((1u << samples.succeeded) - 1)) != 0 ? 1 : 0;
  }
  return static_cast<double>(with_success) / static_cast<double>(subsets);
}

TEST(EvaluationMeans, PassAtKIsTheShareOfSubsetsWithASuccess) {  // EM-3
  for (std::int32_t s = 1; s <= 10; ++s)
    for (std::int32_t c = 0; c <= s; ++c)
      for (std::int32_t k = 1; k <= s; ++k)
        EXPECT_NEAR(pass_at(k, {s, c}), brute_force(k, {s, c}), 1e-12)
            << "s " << s << ", c " << c << ", k " << k;
  EXPECT_EQ(pass_at(1, {1024, 0}), 0);
  EXPECT_EQ(pass_at(1024, {1024, 1}), 1);
  EXPECT_NEAR(pass_at(512, {1024, 1}), 0.5, 1e-12);
}

TEST(EvaluationMeans, SizesArePowersOfTwoAndNItself) {
  using Sizes = std::vector<std::int32_t>;
  EXPECT_EQ(pass_sizes(1), Sizes{});
  EXPECT_EQ(pass_sizes(2), (Sizes{1, 2}));
  EXPECT_EQ(pass_sizes(8), (Sizes{1, 2, 4, 8}));
  EXPECT_EQ(pass_sizes(11), (Sizes{1, 2, 4, 8, 11}));
}

TEST(EvaluationMeans, OneCompletionOfEachPromptHasAMeanItsErrorAndNoMore) {
  EvaluationMeans means(plan_of(3, 1));
  means.scored({2, 0}, 1);
  means.scored({0, 0}, 0.25);
  EXPECT_FALSE(means.done());
  means.scored({1, 0}, 0);
  EXPECT_TRUE(means.done());
  const auto error = means.figures().all.standard_error;
  ASSERT_TRUE(error);
  EXPECT_NEAR(*error, std::sqrt(0.5416666666666666 / 2 / 3), 1e-12);
  EXPECT_EQ(means.figures(), (messages::EvaluationFigures{
                                 .all = {.mean = 1.25 / 3, .scored = 3, .standard_error = error}}));
}

// EM-1, EM-2: prompt 0 has 3 of 4 samples, of which two succeed; prompt 1 has all, and one does.
TEST(EvaluationMeans, EachPromptWeighsTheSameAndAFailureIsNoZero) {
  EvaluationMeans means(plan_of(2, 4, true));
  means.scored({0, 0}, 1);
  means.failed({0, 1});
  means.scored({0, 2}, 0.5);  // a half is no success
  means.scored({0, 3}, 1);
  means.failed({0, 4});  // the greedy one
  for (const std::int32_t sample : {0, 1, 2}) means.scored({1, sample}, 0);
  means.scored({1, 3}, 2);
  means.scored({1, 4}, 0.75);
  ASSERT_TRUE(means.done());
  const messages::RewardFigures all = means.figures().all;
  EXPECT_EQ(all.mean, (2.5 / 3 + 0.5) / 2);
  EXPECT_EQ(all.greedy, 0.75);
  EXPECT_EQ(all.scored, 8);
  EXPECT_EQ(all.failed, 2);
  ASSERT_EQ(all.pass.size(), 3u);
  EXPECT_EQ(all.pass[0].k, 1);
  EXPECT_NEAR(all.pass[0].value, (2.0 / 3 + 1.0 / 4) / 2, 1e-12);
  EXPECT_NEAR(all.pass[1].value, (1 + 0.5) / 2, 1e-12);
  EXPECT_EQ(all.pass[2], (messages::FigureAt{4, 1})) << "of prompt 1 alone: the other has 3 scores";
}

TEST(EvaluationMeans, TellsItsStandardErrorOverPrompts) {
  EvaluationMeans one(plan_of(1, 4));
  for (const std::int32_t sample : {0, 1, 2, 3}) one.scored({0, sample}, sample);
  EXPECT_FALSE(one.figures().all.standard_error) << "of one prompt";
  EvaluationMeans means(plan_of(4, 2));
  for (const std::int32_t index : {0, 1, 2, 3})
    for (const std::int32_t sample : {0, 1}) means.scored({index, sample}, index * 2 + sample);
  // The prompts' means are 0.5, 2.5, 4.5 and 6.5.
  ASSERT_TRUE(means.figures().all.standard_error);
  EXPECT_NEAR(*means.figures().all.standard_error, std::sqrt(20.0 / 3 / 4), 1e-12);
}

TEST(EvaluationMeans, SaysWhatFailuresWouldMakeOfTheMean) {
  for (const double value : {0.0, -1.0}) {
    EvaluationPlan plan = plan_of(2, 2, true);
    plan.failure_reward = value;
    EvaluationMeans means(plan);
    means.scored({0, 0}, 1);
    means.failed({0, 1});
    for (const std::int32_t sample : {0, 1, 2}) means.scored({1, sample}, 1);
    means.scored({0, 2}, 0);
    EXPECT_EQ(means.figures().all.mean, 1);
    EXPECT_EQ(means.figures().all.mean_with_failures, ((1 + value) / 2 + 1) / 2);
  }
}

TEST(EvaluationMeans, TheAnswerOfTheMajorityCounts) {  // EM-4
  const Outcome a{1, 7}, b{0, 8}, none{0.25, std::nullopt};
  const auto majority = [](std::int32_t k, const std::vector<Outcome>& all) {
    return majority_at(k, all);
  };
  EXPECT_EQ(majority(3, {b, a, a}), 1);
  EXPECT_EQ(majority(4, {b, a, a, b}), 0) << "the earliest of equals";
  EXPECT_EQ(majority(4, {none, none, none, a}), 1) << "no answer is no vote";
  EXPECT_EQ(majority(2, {none, none}), 0.25);
  EXPECT_EQ(majority(2, {a, b, b, b, a}), 0.5) << "two blocks, and one sample is left over";
}

// EM-5: prompt 0 has the number in two of three scored samples, prompt 1 in one; the greedy
// completion and the failed one do not count.
TEST(EvaluationMeans, NumbersOfExtraHaveMeansAsRewardsHave) {
  EvaluationPlan plan = plan_of(2, 4, true);
  plan.sources = sources_of({{"a", "b"}});
  EvaluationMeans means(plan);
  means.scored({0, 0}, {.reward = 1, .extra = {{"format", 1}}});
  means.scored({0, 1}, {.reward = 0, .extra = {{"format", 0}}});
  means.scored({0, 2}, {.reward = 0});
  means.failed({0, 3});
  means.scored({0, 4}, {.reward = 0, .extra = {{"format", 9}}});
  for (const std::int32_t sample : {1, 2, 3, 4}) means.scored({1, sample}, 0);
  means.scored({1, 0}, {.reward = 0, .extra = {{"format", 1}, {"depth", 3}}});
  ASSERT_TRUE(means.done());
  const messages::EvaluationFigures figures = means.figures();
  using Means = std::map<std::string, double>;
  EXPECT_EQ(figures.all.extra, (Means{{"depth", 3}, {"format", 0.75}}));
  ASSERT_EQ(figures.sources.size(), 2u);
  EXPECT_EQ(figures.sources[0].second.extra, (Means{{"format", 0.5}}));
  EXPECT_EQ(figures.sources[1].second.extra, (Means{{"depth", 3}, {"format", 1}}));
  EXPECT_FALSE(means.extra_left_out());
}

TEST(EvaluationMeans, OfTooManyNumbersTheSameAreKeptInAnyOrder) {  // EM-5
  const auto name = [](std::size_t i) { return "n" + std::to_string(100 + i); };
  const auto prompts = static_cast<std::int32_t>(kExtraKeysMax) + 3;
  const auto figures_of = [&](bool backwards) {
    EvaluationMeans means(plan_of(prompts, 1));
    for (std::int32_t i = 0; i < prompts; ++i) {
      const std::int32_t index = backwards ? prompts - 1 - i : i;
      means.scored({index, 0},
                   {.extra = {{name(static_cast<std::size_t>(index)), index}, {"n000", 0.1}}});
    }
    EXPECT_TRUE(means.extra_left_out());
    return means.figures();
  };
  const messages::EvaluationFigures figures = figures_of(false);
  EXPECT_EQ(figures, figures_of(true));
  EXPECT_EQ(figures.all.extra.size(), kExtraKeysMax);
  EXPECT_TRUE(figures.all.extra.contains("n000"));
  EXPECT_EQ(figures.all.extra.rbegin()->first, name(kExtraKeysMax - 2));
}

TEST(EvaluationMeans, MajoritiesAreThereWhereAnswersAre) {  // EM-4
  EvaluationMeans means(plan_of(2, 4));
  for (const std::int32_t sample : {0, 1, 2, 3})
    means.scored({0, sample}, {.reward = sample > 0 ? 1.0 : 0.0, .vote = sample > 0});
  means.scored({1, 0}, {.reward = 0, .vote = 5});
  means.scored({1, 1}, {.reward = 1, .vote = 6});
  means.failed({1, 2});
  means.failed({1, 3});
  // maj@2: prompt 0 has (0 + 1) / 2, prompt 1 has 0. maj@4: prompt 1 has too few scores.
  EXPECT_EQ(means.figures().all.majority, (std::vector<messages::FigureAt>{{2, 0.25}, {4, 1}}));
  EvaluationMeans silent(plan_of(1, 2));
  for (const std::int32_t sample : {0, 1}) silent.scored({0, sample}, 1);
  EXPECT_TRUE(silent.figures().all.majority.empty());
}

TEST(EvaluationMeans, FiguresDoNotDependOnTheOrderOfOutcomes) {  // EM-2
  const std::int32_t prompts = 30, n = 7;
  std::vector<CompletionId> order;
  for (std::int32_t i = 0; i < prompts; ++i)
    for (std::int32_t k = 0; k <= n; ++k) order.push_back({i, k});
  const auto figures_of = [&](const std::vector<CompletionId>& completions) {
    EvaluationPlan plan = plan_of(prompts, n, true);
    std::vector<std::optional<std::string>> data_source;
    for (std::int32_t i = 0; i < prompts; ++i) data_source.emplace_back(i % 3 == 0 ? "a" : "b");
    plan.sources = sources_of(data_source);
    EvaluationMeans means(plan);
    for (const CompletionId& completion : completions) {
      Rng rng(derive_seed(9, {static_cast<std::uint64_t>(completion.index),
                              static_cast<std::uint64_t>(completion.sample)}));
      if (rng.below(10) == 0)
        means.failed(completion);
      else
        means.scored(completion, rng.unit());
    }
    EXPECT_TRUE(means.done());
    return means.figures();
  };
  const messages::EvaluationFigures in_order = figures_of(order);
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Rng rng(seed);
    shuffle(std::span(order), rng);
    EXPECT_EQ(figures_of(order), in_order) << "seed " << seed;
  }
}

TEST(EvaluationMeans, EachSourceHasItsOwnFigures) {
  EvaluationPlan plan = plan_of(5, 2);
  plan.sources = sources_of({"math", std::nullopt, "code", "math", ""});
  EvaluationMeans means(plan);
  for (const std::int32_t index : {0, 3, 1, 4})
    for (const std::int32_t sample : {0, 1})
      means.scored({index, sample}, index == 0 || sample == 1 ? 1 : 0);
  means.failed({2, 0});
  means.failed({2, 1});
  const messages::EvaluationFigures figures = means.figures();
  EXPECT_EQ(figures.all.mean, (1 + 0.5 + 0.5 + 0.5) / 4);
  ASSERT_EQ(figures.sources.size(), 2u) << "two prompts are of no source";
  EXPECT_EQ(figures.sources[0],
            (std::pair<std::string, messages::RewardFigures>{"code", {.failed = 2}}))
      << "in which everything failed";
  EXPECT_EQ(figures.sources[1].first, "math");
  EXPECT_EQ(figures.sources[1].second.mean, 0.75);
  EXPECT_EQ(figures.sources[1].second.scored, 4);
  EXPECT_EQ(figures.sources[1].second.pass, (std::vector<messages::FigureAt>{{1, 0.75}, {2, 1}}));
}

TEST(EvaluationMeans, WhereEverythingFailedThereIsNoMean) {
  EvaluationPlan plan = plan_of(2, 2, true);
  plan.sources = sources_of({"a", "b"});
  EvaluationMeans means(plan);
  for (const std::int32_t index : {0, 1})
    for (const std::int32_t sample : {0, 1, 2}) means.failed({index, sample});
  ASSERT_TRUE(means.done());
  EXPECT_EQ(means.figures(),
            (messages::EvaluationFigures{.all = {.failed = 6},
                                         .sources = {{"a", {.failed = 3}}, {"b", {.failed = 3}}}}));
}

TEST(EvaluationMeans, BeyondTheLimitSourcesAreCountedTogether) {
  std::vector<std::optional<std::string>> data_source;
  for (int i = 0; i < 100; ++i) data_source.push_back("s" + std::to_string(i));
  data_source.push_back("s0");
  EvaluationPlan plan = plan_of(101, 1);
  plan.sources = sources_of(data_source);
  EXPECT_EQ(plan.sources.names.size(), kSourcesMax + 1);
  EvaluationMeans means(plan);
  for (std::int32_t i = 0; i < 101; ++i) means.scored({i, 0}, 1);
  std::map<std::string, std::int64_t> scored;
  for (const auto& [name, figures] : means.figures().sources) scored[name] = figures.scored;
  EXPECT_EQ(scored.size(), kSourcesMax + 1);
  EXPECT_EQ(scored[kOtherSources], 36);
  EXPECT_EQ(scored["s0"], 2);
  EXPECT_EQ(scored["s63"], 1);
  EXPECT_FALSE(scored.contains("s64"));
}

TEST(EvaluationMeans, NamesOfSourcesAreSafe) {
  EXPECT_EQ(source_name("gsm8k-v1.1"), "gsm8k-v1.1");
  EXPECT_EQ(source_name("openai/gsm8k"), "openai_gsm8k");
  EXPECT_EQ(source_name("a b\x1b[2J\n\"\\"), "a_b__2J___");
  EXPECT_EQ(source_name("\u6570\u5b66"), "__") << "one for each character";
  EXPECT_EQ(source_name("\xff\x80"), "_");
  EXPECT_EQ(source_name("\x80"), "_");
  EXPECT_EQ(source_name(std::string(1000, 'x')).size(), kSourceCharsMax);
  const EvaluationSources same = sources_of({"a/b", "a b"});
  EXPECT_EQ(same.names, std::vector<std::string>{"a_b"});
}

TEST(EvaluationMeans, APromptsSeedIsItsPlacesAndTheJobs) {
  EvaluationPlan plan = plan_of(2, 1), other = plan;
  other.seed = 6;
  EXPECT_EQ(prompt_seed(plan, 1), prompt_seed(plan_of(9, 4), 1));
  EXPECT_NE(prompt_seed(plan, 0), prompt_seed(plan, 1));
  EXPECT_NE(prompt_seed(plan, 0), prompt_seed(other, 0));
}

}  // namespace
}  // namespace tandem::exchange
