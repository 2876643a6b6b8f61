#include "scheduler/fleet/cost.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/seeds.h"

namespace tandem::scheduler {
namespace {

constexpr double kHour = 3600;

Pricing usual() { return {.rollout = 2.1, .learner = 4}; }

TEST(Cost, ADeviceIsAGpuOrAnActorWithoutOne) {
  EXPECT_EQ(devices_of(0), 1);
  EXPECT_EQ(devices_of(1), 1);
  EXPECT_EQ(devices_of(0.25), 0.25);
}

TEST(Cost, IsTheSumOfBothPools) {
  EXPECT_NEAR(cost_of({.rollout = 12 * kHour, .learner = 4 * kHour}, usual()), 12 * 2.1 + 4 * 4.0,
              1e-9);
  EXPECT_EQ(cost_of({}, usual()), 0);
  EXPECT_EQ(cost_of({.rollout = kHour, .learner = kHour}, {}), 0) << "what is free costs nothing";
}

TEST(Cost, GoodputIsOfBothPoolsAndNeedsNoPrices) {  // GP-1
  EXPECT_NEAR(goodput(16'000, {.rollout = 6, .learner = 2}), 2000, 1e-9);
  EXPECT_EQ(goodput(16'000, {}), 0) << "no device was used yet";
}

TEST(Cost, OfAStepIsTheMeanOfTheNewestOnes) {
  std::deque<CostPoint> newest;
  EXPECT_FALSE(cost_per_step(newest, usual()));
  add_cost_point(newest, {.steps = 1, .used = {.rollout = kHour}});
  EXPECT_NEAR(cost_per_step(newest, usual()).value_or(0), 2.1, 1e-9) << "from the beginning on";
  add_cost_point(newest, {.steps = 2, .used = {.rollout = 4 * kHour}});
  EXPECT_NEAR(cost_per_step(newest, usual()).value_or(0), 3 * 2.1, 1e-9);
  for (std::int64_t steps = 3; steps < 100; ++steps)
    add_cost_point(newest,
                   {.steps = steps, .used = {.rollout = 4 * kHour, .learner = steps * kHour}});
  EXPECT_EQ(newest.size(), kCostSteps + 1);
  EXPECT_NEAR(cost_per_step(newest, usual()).value_or(0), 4, 1e-9)
      << "the first ones are forgotten";
  EXPECT_FALSE(cost_per_step({CostPoint{.steps = 0, .used = {.rollout = 1}}}, usual()))
      << "no step is committed";
}

// Whatever a run does, each step costs at least nothing, and the costs of its steps are its cost.
TEST(Cost, OfStepsAddsUp) {
  for_seeds(50, [](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> some(0, 1e5);
    const Pricing prices{.rollout = some(random) / 1e4, .learner = some(random) / 1e4};
    CostPoint before, now;
    double sum = 0;
    for (int step = 0; step < 100; ++step) {
      now.steps += 1;
      now.used.rollout += some(random);
      now.used.learner += some(random);
      const double cost = cost_per_step({before, now}, prices).value_or(-1);
      ASSERT_GE(cost, 0);
      sum += cost;
      before = now;
    }
    EXPECT_NEAR(sum / cost_of(now.used, prices), 1, 1e-9);
  });
}

TEST(Cost, PricesAreReadInAnyOrder) {
  const auto plain = parse_pricing("rollout=2.10,learner=4.00");
  ASSERT_TRUE(plain) << plain.error().message;
  EXPECT_EQ(*plain, usual());
  const auto euro = parse_pricing("currency=EUR,learner=4,rollout=0");
  ASSERT_TRUE(euro) << euro.error().message;
  EXPECT_EQ(*euro, (Pricing{.rollout = 0, .learner = 4, .currency = "EUR"}));
}

TEST(Cost, WrittenPricesReadAsTheSame) {
  EXPECT_EQ(text_of(usual()), "rollout=2.1,learner=4,currency=USD");
  for_seeds(200, [](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> exponent(-300, 6);
    const Pricing prices{.rollout = std::pow(10, exponent(random)),
                         .learner = std::pow(10, exponent(random)),
                         .currency = "credits"};
    const auto read = parse_pricing(text_of(prices));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, prices);
  });
}

TEST(Cost, BadPricesAreRefusedWithWhatIsWrong) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "there is no price of rollout"},
      {"rollout=2", "there is no price of learner"},
      {"rollout=2,learner=-1", "`-1` is no price of learner"},
      {"rollout=nan,learner=1", "`nan` is no price of rollout"},
      {"rollout=inf,learner=1", "`inf` is no price of rollout"},
      {"rollout=2000000,learner=1", "from 0 to a million"},
      {"rollout=,learner=1", "`` is no price of rollout"},
      {"rollout=2x,learner=1", "`2x` is no price of rollout"},
      {"rollout,learner=1", "`` is no price of rollout"},
      {"rollout=1,rollout=2,learner=1", "`rollout` is given twice"},
      {"rollout=1,learner=1,reward=1", "`reward=1` is no price: the pools are rollout and learner"},
      {"rollout=1,,learner=1", "`` is no price"},
      {"rollout=1,learner=1,currency=", "`` is no currency"},
      {"rollout=1,learner=1,currency=U D", "`U D` is no currency"},
      {"rollout=1,learner=1,currency=abcdefghijklmnopq", "at most 16 letters"}};
  for (const auto& [text, message] : cases) {
    const auto prices = parse_pricing(text);
    ASSERT_FALSE(prices) << text;
    EXPECT_EQ(prices.error().code, ErrorCode::kInvalid);
    EXPECT_NE(prices.error().message.find(message), std::string::npos) << prices.error().message;
    EXPECT_NE(prices.error().help.find("rollout=2.10,learner=4.00"), std::string::npos);
  }
}

TEST(Cost, ACurrencyIsAShortWord) {
  for (const char* good : {"USD", "credits", "abcdefghijklmnop"}) EXPECT_TRUE(is_currency(good));
  for (const char* bad : {"", "US D", "€", "<b>", "abcdefghijklmnopq", "a\n"})
    EXPECT_FALSE(is_currency(bad)) << bad;
}

}  // namespace
}  // namespace tandem::scheduler
