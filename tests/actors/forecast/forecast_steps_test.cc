// Tests actors/forecast/forecast_steps.h.
#include "actors/forecast/forecast_steps.h"

#include <gtest/gtest.h>

#include <vector>

namespace tandem::forecast {
namespace {

// Two rollouts; start-up and tail are slow, and of the steps between them each takes 10 s, of which
// the learner trains 8 s and the rollouts work 15 s.
std::vector<ForecastStep> run_of(std::size_t count) {
  std::vector<ForecastStep> steps;
  double at = 100, training = 3;
  for (std::size_t i = 1; i <= count; ++i) {
    const bool steady = i > count / 4 && i <= count - count / 4;
    at += steady ? 10 : 90;
    training += 8;
    steps.push_back({.at_s = at,
                     .training_s = training,
                     .rollouts_busy_s = 15 * static_cast<double>(i),
                     .rollouts_up_s = 2 * at,
                     .tokens_trained = static_cast<std::int64_t>(1000 * i)});
  }
  return steps;
}

TEST(SteadyPart, IsTheMiddleHalfOfTheSteps) {
  for (const std::size_t count : {4u, 5u, 7u, 8u, 50u, 1000u}) {
    SCOPED_TRACE(count);
    const auto part = steady_part(run_of(count));
    ASSERT_TRUE(part);
    EXPECT_EQ(part->first, static_cast<std::int64_t>(count / 4) + 1);
    EXPECT_EQ(part->last, static_cast<std::int64_t>(count - count / 4));
    EXPECT_NEAR(part->seconds, 10 * static_cast<double>(part->steps()), 1e-9);
    EXPECT_NEAR(part->tokens_trained_per_s, 100, 1e-9);
    EXPECT_NEAR(part->trainer_idle_fraction, 0.2, 1e-9);
    EXPECT_NEAR(part->rollout_idle_fraction, 0.25, 1e-9);
  }
}

TEST(SteadyPart, NeedsFourStepsThatTakeTime) {
  EXPECT_FALSE(steady_part({}));
  EXPECT_FALSE(steady_part(run_of(3)));
  EXPECT_FALSE(steady_part(std::vector<ForecastStep>(8)));
}

}  // namespace
}  // namespace tandem::forecast
