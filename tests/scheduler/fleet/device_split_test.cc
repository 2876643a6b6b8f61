#include "scheduler/fleet/device_split.h"

#include <gtest/gtest.h>

#include "tests/scheduler/fleet/random_fleet.h"

namespace tandem::scheduler {
namespace {

// A rank trains 1,000 tokens in 10 s, and a rollout generates 100 tokens per second: with as many
// ranks as rollouts neither waits.
const FleetModel kEven{.rollouts_per_s = {100}, .step_seconds = 10, .step_tokens = 1000};

TEST(DeviceSplit, TakesMostStepsWhereNeitherSideWaits) {
  const Splits splits = splits_of({.model = kEven, .devices = 16, .headroom = 1});
  ASSERT_EQ(splits.all.size(), 15u);
  const Split& best = splits.all[splits.best];
  EXPECT_EQ(best.fleet.rollouts, 8);
  EXPECT_EQ(best.ranks, 8);
  EXPECT_NEAR(best.step_seconds, 1.25, 1e-9);
  EXPECT_NEAR(best.steps_per_hour, 2880, 1e-6);
  EXPECT_NEAR(splits.all.front().steps_per_hour, 360, 1e-6) << "one rollout alone";
}

TEST(DeviceSplit, HeadroomAsksForMoreRollouts) {
  const Splits splits = splits_of({.model = kEven, .devices = 18, .headroom = 0.8});
  EXPECT_EQ(splits.all[splits.best].fleet.rollouts, 10);
}

TEST(DeviceSplit, ScalesTheLearnersStep) {
  const auto seconds = [](std::int64_t ranks, double efficiency) {
    return scaled_step_seconds(
        {.seconds = 8, .measured_ranks = 2, .ranks = ranks, .efficiency = efficiency});
  };
  EXPECT_NEAR(seconds(8, 1), 2, 1e-9);
  EXPECT_NEAR(seconds(1, 1), 16, 1e-9);
  EXPECT_NEAR(seconds(4, 0.9), 8 / 1.8, 1e-9);
  EXPECT_NEAR(seconds(64, 0.5), 8, 1e-9);
}

// DV-1 and DV-2, over random models.
TEST(DeviceSplit, CoversAllAndMarksTheBest) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed=" + std::to_string(seed));
    Rng rng(seed);
    const SplitRequest request{.model = random_model(rng),
                               .ranks = static_cast<std::int64_t>(1 + rng.below(4)),
                               .devices = static_cast<std::int64_t>(2 + rng.below(60)),
                               .learner_efficiency = 0.5 + 0.5 * rng.unit(),
                               .headroom = 0.1 + 0.9 * rng.unit()};
    const Splits splits = splits_of(request);
    ASSERT_EQ(splits.all.size(), static_cast<std::size_t>(request.devices - 1));
    for (std::size_t i = 0; i < splits.all.size(); ++i) {
      const Split& split = splits.all[i];
      EXPECT_EQ(split.fleet.rollouts, static_cast<std::int64_t>(i) + 1);
      EXPECT_EQ(split.ranks + split.fleet.rollouts, request.devices);
      EXPECT_LE(split.steps_per_hour, splits.all[splits.best].steps_per_hour);
      if (i < splits.best) {
        EXPECT_LT(split.steps_per_hour, splits.all[splits.best].steps_per_hour);
      }
    }
  }
}

}  // namespace
}  // namespace tandem::scheduler
