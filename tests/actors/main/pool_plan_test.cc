// Tests pool_plan.h, metric_rates.h, rates_in.h: what `tandem size` reads of a job and of its run.
#include "actors/main/pool_plan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>

#include "actors/exchange/fleet_json.h"
#include "actors/main/metric_rates.h"
#include "actors/main/rates_in.h"
#include "runtime/base/json.h"
#include "runtime/base/rng.h"

namespace tandem::app {
namespace {

using nlohmann::json;

const PoolPlan kPlan{.replicas = 2,
                     .completions_per_prompt = 8,
                     .prompts_per_step = 64,
                     .max_staleness = 2,
                     .prices = {}};

TEST(PoolPlan, IsReadFromTheKeysOfAJob) {
  const auto plan = app::plan_of({{"learner.ranks", "2"},
                                  {"rollout.replicas", "3"},
                                  {"rollout.n", "16"},
                                  {"rollout.name", "native"},
                                  {"data.train_batch_size", "32"},
                                  {"async.max_staleness", "0"},
                                  {"pools.rollout.gpus_per_actor", "0.25"},
                                  {"pricing.rollout", "2.1"},
                                  {"pricing.learner", "4"},
                                  {"pricing.currency", "\"EUR\""}},
                                 "job.yaml");
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->replicas, 3);
  EXPECT_EQ(plan->ranks, 2);
  EXPECT_EQ(plan->completions_per_step(), 512);
  EXPECT_FALSE(plan->overlaps());
  EXPECT_TRUE(plan->group_prompt_shared);
  EXPECT_EQ(plan->devices_per_rollout, 0.25);
  EXPECT_EQ(plan->devices_per_rank, 1.0) << "an actor without a GPU is a device";
  EXPECT_EQ(plan->prices, (scheduler::Pricing{.rollout = 2.1, .learner = 4, .currency = "EUR"}));
}

TEST(PoolPlan, AJobOfActorsAloneHasNone) {
  const auto none = app::plan_of({{"name", "counter"}}, "counter-1");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(none.error().where, "counter-1");
  EXPECT_NE(none.error().help.find("tandem scale"), std::string::npos);
}

TEST(PoolPlan, PricesOfAFile) {
  const scheduler::Pricing expected{.rollout = 2.1, .learner = 4, .currency = "EUR"};
  for (const char* const text :
       {"rollout=2.10,learner=4.00,currency=EUR\n",
        "# of a GPU and hour\nrollout: 2.10  # preemptible\n\nlearner: 4.00\r\ncurrency: EUR\n"}) {
    const auto prices = prices_of_file(text, "prices.yaml");
    ASSERT_TRUE(prices) << text << prices.error().message;
    EXPECT_EQ(*prices, expected);
  }
  for (const char* const text : {"", "rollout: 2", "rollout: -1\nlearner: 2",
                                 "rollout: nan\nlearner: 2", "trainer: 2\nlearner: 1"}) {
    const auto refused = prices_of_file(text, "prices.yaml");
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().where, "prices.yaml");
    EXPECT_FALSE(refused.error().help.empty());
  }
}

TEST(PoolPlan, AnotherBatchAndOtherRanksScaleTheStep) {
  const scheduler::FleetRates rates{.steps = 1,
                                    .seconds = 10,
                                    .rollouts = {{.actor = "a/rollout/0", .tokens_per_s = 50}},
                                    .step_seconds = 4,
                                    .step_tokens = 1000,
                                    .completions_per_step = 512,
                                    .prefix_hit_ratio = {}};
  PoolPlan planned = kPlan;
  planned.prompts_per_step = 128;
  planned.ranks = 4;
  const auto now = replanned(rates, kPlan, planned);
  EXPECT_EQ(now.step_tokens, 2000);
  EXPECT_EQ(now.completions_per_step, 1024);
  EXPECT_NEAR(now.step_seconds, 2, 1e-9) << "twice the tokens by four times the ranks";
  EXPECT_EQ(now.rollouts.front().tokens_per_s, 50);
  EXPECT_FALSE(planned.same_fleet(kPlan));
}

TEST(RatesIn, ReadsWhatTheApiWrites) {
  const scheduler::FleetRates rates{.steps = 7,
                                    .seconds = 70,
                                    .rollouts = {{.actor = "a-1/rollout/0",
                                                  .tokens_per_s = 100,
                                                  .busy_fraction = 0.5,
                                                  .install_fraction = 0.1}},
                                    .step_seconds = 3,
                                    .step_tokens = 400,
                                    .completions_per_step = 8,
                                    .generated_per_trained = 1.5,
                                    .install_seconds = 0.25,
                                    .prefix_hit_ratio = 0.4,
                                    .trainer_idle_fraction = 0.3,
                                    .rollout_idle_fraction = 0.2,
                                    .rollout_deaths = 1,
                                    .waits = {0, 0.5, 0, 0, 0.25},
                                    .since_resize = true};
  const auto read = rates_in(exchange::rates_json(rates));
  ASSERT_TRUE(read);
  EXPECT_EQ(exchange::rates_json(*read), exchange::rates_json(rates));
  for (const char* const text :
       {"null", "[]", "{}", R"({"steps": 3})", R"({"steps": 3, "rollouts": [1]})",
        R"({"steps": 0, "rollouts": [{"tokens_per_s": 1}]})", R"({"steps": 1, "rollouts": 2})"})
    EXPECT_FALSE(rates_in(parse_json(text))) << text;
}

// A step each 2 s, of which the trainer works 1 s, on completions of 10 tokens.
json line(int step) {
  return {{"step", step},
          {"timing_s/step", 1.0},
          {"response_length/mean", 10.0},
          {"tandem/wall_seconds", 100.0 + 2 * step},
          {"tandem/trainer_idle_fraction", 0.9},
          {"tandem/rollout_idle_fraction", 0.2},
          {"tandem/tokens_generated_per_trained", 1.25}};
}

TEST(MetricRates, OfAFormerVersionsLines) {
  MetricRates lines;
  for (int step = 1; step <= 20; ++step) {
    lines.add(line(step));
    lines.add({{"step", step}, {"eval", "periodic"}, {"val/reward/mean", 1.0}});
  }
  EXPECT_EQ(lines.steps(), 20);
  const auto rates = lines.rates(kPlan);
  ASSERT_TRUE(rates);
  EXPECT_EQ(rates->steps, 10);
  EXPECT_NEAR(rates->seconds, 20, 1e-9);
  EXPECT_NEAR(rates->trainer_idle_fraction, 0.5, 1e-9) << "of the window, not since the start";
  EXPECT_EQ(rates->completions_per_step, 512);
  EXPECT_NEAR(rates->step_tokens, 5120, 1e-9);
  ASSERT_EQ(rates->rollouts.size(), 2u);
  // 51,200 · 1.25 tokens by two engines that were at work for 16 s each.
  EXPECT_NEAR(rates->rollouts[0].tokens_per_s, 2000, 1e-9);
}

TEST(MetricRates, TheRolloutsOwnRatesComeFirst) {
  MetricRates lines;
  for (int step = 1; step <= 4; ++step) {
    json one = line(step);
    one["tandem/rollout_tokens_per_s/mean"] = 500;
    one["tandem/rollout_tokens_per_s/min"] = 200;
    one["tandem/rollout_tokens_per_s/max"] = 700;
    one["tandem/install_pause_fraction"] = 0.1;
    one["tandem/install_pause_s"] = 0.2;
    one["tandem/prefix_hit_ratio"] = 0.3;
    one["tandem/recent/trainer_idle_fraction"] = 0.4;
    lines.add(one);
  }
  PoolPlan plan = kPlan;
  plan.replicas = 4;
  const auto rates = lines.rates(plan);
  ASSERT_TRUE(rates);
  std::vector<double> each;
  for (const auto& rollout : rates->rollouts) each.push_back(rollout.tokens_per_s);
  EXPECT_EQ(each, (std::vector<double>{700, 550, 550, 200}));
  EXPECT_NEAR(rates->rollouts[0].install_fraction, 0.1, 1e-9);
  EXPECT_NEAR(rates->install_seconds, 0.2, 1e-9);
  EXPECT_EQ(rates->prefix_hit_ratio, 0.3);
  EXPECT_EQ(rates->trainer_idle_fraction, 0.4);
}

// Forty steps, of which the first 20 are left out, and a number of rollouts for each.
Result<scheduler::FleetRates> rates_of_fleets(const std::function<json(int)>& up) {
  MetricRates lines;
  for (int step = 1; step <= 40; ++step) {
    json one = line(step);
    one["tandem/rollouts"] = up(step);
    lines.add(one);
  }
  return lines.rates(kPlan);
}

TEST(MetricRates, ARolloutThatDiesAndComesBackBeginsNoWindow) {
  const auto died = rates_of_fleets([](int step) { return step > 25 && step <= 30 ? 3 : 4; });
  ASSERT_TRUE(died);
  EXPECT_EQ(died->steps, 20);
  EXPECT_FALSE(died->since_resize);
  ASSERT_EQ(died->rollouts.size(), 4u);
  // 102,400 · 1.25 tokens in 40 s, a quarter of them by three engines, at work for 80 % of it.
  EXPECT_NEAR(died->rollouts[0].tokens_per_s, 128000 / (40 * 0.8 * 3.75), 1e-9);
  const auto twice = rates_of_fleets([](int step) { return step % 7 == 0 ? 2 + step % 2 : 4; });
  ASSERT_TRUE(twice);
  EXPECT_EQ(twice->steps, 20);
}

TEST(MetricRates, AnotherFleetBeginsAWindow) {
  const auto window = [](int from, int to, int before, int amid, int after) {
    const auto rates = rates_of_fleets([=](int step) {
      return step <= from ? before : step <= to ? amid : after;
    });
    EXPECT_TRUE(rates && rates->since_resize);
    return rates ? rates->steps : -1;
  };
  EXPECT_EQ(window(20, 30, 4, 3, 4), 10) << "away for too long";
  EXPECT_EQ(window(30, 30, 3, 3, 4), 10) << "more";
  EXPECT_EQ(window(38, 38, 3, 3, 4), 2) << "more, and just now";
  EXPECT_EQ(window(30, 30, 4, 4, 3), 10) << "fewer, which have not come back";
  EXPECT_EQ(window(30, 35, 4, 5, 4), 5) << "one was added and taken away";
  const auto former = rates_of_fleets([](int step) { return step <= 30 ? json() : json(4); });
  ASSERT_TRUE(former);
  EXPECT_EQ(former->steps, 10) << "the lines before do not say";
}

TEST(MetricRates, OneStepIsAWindowAndNoneIsRefused) {
  MetricRates lines;
  const auto none = lines.rates(kPlan);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kInvalid);
  EXPECT_NE(none.error().message.find("no step"), std::string::npos);
  lines.add(line(1));
  const auto rates = lines.rates(kPlan);
  ASSERT_TRUE(rates);
  EXPECT_EQ(rates->steps, 1);
  EXPECT_NEAR(rates->seconds, 10, 1e-9) << "by the idle share since the start";
}

// Shares stay shares and rates stay finite, whatever the figures of the lines are.
TEST(MetricRates, AreFiniteOfAnyLines) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed=" + std::to_string(seed));
    Rng rng(seed);
    MetricRates lines;
    const std::uint64_t count = 1 + rng.below(20);
    for (std::uint64_t step = 1; step <= count; ++step) {
      json one = line(static_cast<int>(step));
      for (auto& [key, value] : one.items())
        if (key != "timing_s/step" && rng.below(4) == 0)
          value = rng.below(2) == 0 ? json() : json(100 * (rng.unit() - 0.5));
      lines.add(one);
    }
    const auto rates = lines.rates(kPlan);
    ASSERT_TRUE(rates);
    EXPECT_GT(rates->seconds, 0);
    EXPECT_TRUE(rates->rollout_idle_fraction >= 0 && rates->rollout_idle_fraction <= 1);
    EXPECT_TRUE(rates->trainer_idle_fraction >= 0 && rates->trainer_idle_fraction <= 1);
    for (const auto& rollout : rates->rollouts) EXPECT_TRUE(std::isfinite(rollout.tokens_per_s));
  }
}

}  // namespace
}  // namespace tandem::app
