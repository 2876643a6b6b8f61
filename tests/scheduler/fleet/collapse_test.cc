#include "scheduler/fleet/collapse.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "runtime/base/rng.h"
#include "tests/seeds.h"

namespace tandem::scheduler {
namespace {

constexpr std::int64_t kGroups = 64;

// The steps at which a run of so many steps is told to have collapsed.
std::vector<std::int64_t> told(std::int64_t steps,
                               const std::function<StepSigns(std::int64_t)>& at) {
  CollapseWatch watch;
  std::vector<std::int64_t> all;
  for (std::int64_t step = 1; step <= steps; ++step) {
    StepSigns signs = at(step);
    signs.step = step;
    signs.groups = kGroups;
    if (const auto collapse = watch.take(signs)) all.push_back(collapse->step);
  }
  return all;
}

// SmolLM2-135M at a rate of 1e-3: within twelve steps entropy falls from 2.2 to 0.27 nats, and no
// answer is right any more.
StepSigns destroyed(std::int64_t step) {
  const double left = std::pow(0.75, static_cast<double>(step - 1));
  const double reward = 0.28 * left * left;
  return {.reward_mean = reward,
          .reward_std = std::sqrt(reward * (1 - reward)),
          .entropy = 0.1 + 2.1 * left * left,
          .ppo_kl = 0.5};
}

TEST(Collapse, IsToldOnceWithItsFigures_CW1) {
  const auto steps = told(40, destroyed);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_LE(steps[0], 12);
  CollapseWatch watch;
  std::optional<Collapse> found;
  for (std::int64_t step = 1; !found; ++step) {
    StepSigns signs = destroyed(step);
    signs.step = step;
    signs.groups = kGroups;
    found = watch.take(signs);
  }
  EXPECT_LT(found->now.entropy, found->start.entropy / 4);
  const std::string words = text(*found);
  for (const char* part : {"step ", "entropy is 0.", "nats after 1.", "reward", "actor/ppo_kl 0.5",
                           "learner.optimizer.lr"})
    EXPECT_NE(words.find(part), std::string::npos) << part << " is not in: " << words;
}

TEST(Collapse, ARisingEntropyIsOneToo) {
  EXPECT_EQ(told(30,
                 [](std::int64_t step) {
                   return StepSigns{.reward_mean = step < 10 ? 0.5 : 0.0,
                                    .reward_std = 0.1,
                                    .entropy = step < 10 ? 0.5 : 6};
                 })
                .size(),
            1u);
}

TEST(Collapse, ALearningPolicyIsNone) {
  // The policy becomes sure of what it says, and earns more.
  EXPECT_TRUE(told(200, [](std::int64_t step) {
                const double part = static_cast<double>(step) / 200;
                return StepSigns{.reward_mean = 0.2 + 0.7 * part,
                                 .reward_std = 0.4,
                                 .entropy = 2 * std::pow(0.97, static_cast<double>(step))};
              }).empty());
  // Rewards fall while entropy stays: the prompts have become harder.
  EXPECT_TRUE(told(200, [](std::int64_t step) {
                return StepSigns{
                    .reward_mean = step < 100 ? 0.9 : 0.1, .reward_std = 0.3, .entropy = 1};
              }).empty());
}

// Rewards that only scatter have not fallen, however sure the policy has become.
TEST(Collapse, NoiseIsNone) {
  std::size_t false_alarms = 0;
  for_seeds(50, [&](std::uint64_t seed) {
    Rng rng(seed);
    false_alarms += told(100,
                         [&](std::int64_t step) {
                           const double error = 0.5 / std::sqrt(static_cast<double>(kGroups));
                           return StepSigns{.reward_mean = 0.5 + error * rng.normal(),
                                            .reward_std = 0.5,
                                            .entropy = step < 20 ? 2.0 : 0.1};
                         }).empty()
                        ? 0
                        : 1;
  });
  // 81 windows of a run overlap by three quarters. Without the three errors half of them would be
  // told.
  EXPECT_LE(false_alarms * 5, seeds_of(50));
}

TEST(Collapse, CanBeToldAgainAfterARecovery_CW1) {
  const auto signs = [](std::int64_t step) {
    const bool bad = (step > 20 && step <= 40) || step > 60;
    return StepSigns{.reward_mean = bad ? 0.1 : 0.6, .reward_std = 0.1, .entropy = bad ? 0.1 : 1.5};
  };
  EXPECT_EQ(told(80, signs).size(), 2u);
}

TEST(Collapse, StepsWithoutFiguresAreLeftOut) {
  CollapseWatch watch;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (std::int64_t step = 1; step < 20; ++step)
    EXPECT_FALSE(watch.take({.step = step, .groups = 1, .reward_mean = 1, .entropy = nan}));
}

}  // namespace
}  // namespace tandem::scheduler
