#include "scheduler/fleet/sizing.h"

#include <gtest/gtest.h>

namespace tandem::scheduler {
namespace {

// A worked example: 512 samples of 1,536 tokens per step of 20 s; 4,000 tok/s measured per
// instance.
constexpr Rates kRunbook{.consumed_per_s = 512 * 1536.0 / 20.0, .instance_per_s = 4000.0};

TEST(Sizing, MatchesTheFleetToTheTrainer) {
  EXPECT_EQ(matched_instances(kRunbook), 13);
  EXPECT_EQ(matched_instances(kRunbook, 1.0), 10);
}

TEST(Sizing, TooFewInstancesLeaveTheTrainerIdle) {
  EXPECT_NEAR(trainer_idle_fraction(kRunbook, 8), 1 - 20.0 / 24.576, 1e-12);
  EXPECT_NEAR(trainer_idle_fraction(kRunbook, 8), 0.186, 5e-4);
  EXPECT_EQ(trainer_idle_fraction(kRunbook, 13), 0.0);
  EXPECT_EQ(rollout_idle_fraction(kRunbook, 8), 0.0);
}

TEST(Sizing, TooManyGrowABacklogOrIdle) {
  EXPECT_NEAR(backlog_per_s(kRunbook, 15), 20678.4, 1e-6);
  EXPECT_NEAR(600 * backlog_per_s(kRunbook, 15) / 1e6, 12.4, 0.05);
  EXPECT_EQ(backlog_per_s(kRunbook, 8), 0.0);
  EXPECT_NEAR(rollout_idle_fraction(kRunbook, 15), 20678.4 / 60000, 1e-12);
}

// 8 replicas that each finish 8 completions in 3 s.
TEST(Sizing, TheLessonsThroughput) {
  constexpr Replicas kReplicas{.count = 8, .completions = 8, .seconds = 3};
  EXPECT_NEAR(completions_per_s(kReplicas), 21.3, 0.05);
  EXPECT_NEAR(seconds_to_complete(kReplicas, 256), 12.0, 1e-9);
}

}  // namespace
}  // namespace tandem::scheduler
