#include "scheduler/fleet/version_supply.h"

#include <gtest/gtest.h>

#include "runtime/base/rng.h"
#include "tests/seeds.h"

namespace tandem::scheduler {
namespace {

using enum VersionSupply;

TEST(VersionSupply, AVersionIsOfferedHeldRepeatedOrLost) {
  const std::set<PolicyVersion> offered{{4}, {9}};
  const SupplyState alone{.offered = offered, .next = StepId{7}};
  EXPECT_EQ(supply_of({4}, alone), kOffered);
  EXPECT_EQ(supply_of({5}, alone), kLost);
  EXPECT_EQ(supply_of({7}, alone), kHeld);
  EXPECT_EQ(supply_of({8}, alone), kRepeated);
  EXPECT_EQ(supply_of({9}, alone), kOffered);
  const SupplyState with_older{.offered = offered, .next = StepId{7}, .older_held = 2};
  EXPECT_EQ(supply_of({5}, with_older), kHeld);
  EXPECT_EQ(supply_of({3}, with_older), kLost);
}

TEST(VersionSupply, TheUntrainedWeightsAreInNoCheckpoint) {
  const std::set<PolicyVersion> none;
  const SupplyState state{.offered = none, .next = StepId{1}, .older_held = 4};
  EXPECT_EQ(supply_of(kInitialWeights, state), kLost);
  EXPECT_EQ(supply_of({0}, state), kHeld);
  EXPECT_EQ(oldest_to_be_had(state), PolicyVersion{0});
}

TEST(VersionSupply, TheOldestToBeHadIsTheLowestThatIsNotLost_VS1) {
  for_seeds(500, [](std::uint64_t seed) {
    Rng rng(seed);
    std::set<PolicyVersion> offered;
    for (std::uint64_t left = rng.below(5); left > 0; --left)
      offered.insert({static_cast<std::int64_t>(rng.below(20)) - 1});
    const SupplyState state{.offered = offered,
                            .next = StepId{static_cast<std::int64_t>(rng.below(20))},
                            .older_held = static_cast<std::int64_t>(rng.below(4))};
    PolicyVersion lowest = kInitialWeights;
    while (supply_of(lowest, state) == kLost) ++lowest.value;
    EXPECT_EQ(oldest_to_be_had(state), lowest);
    for (std::int64_t later = state.next.value; later < 30; ++later)
      EXPECT_NE(supply_of({later}, state), kLost);
  });
}

}  // namespace
}  // namespace tandem::scheduler
