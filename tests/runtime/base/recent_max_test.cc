#include "runtime/base/recent_max.h"

#include <gtest/gtest.h>

#include <deque>
#include <utility>

#include "runtime/base/rng.h"
#include "tests/seeds.h"

namespace tandem {
namespace {

using namespace std::chrono_literals;

TEST(RecentMax, ForgetsWhatIsOlderThanTwoMinutes) {
  RecentMax most;
  EXPECT_EQ(most.most(Time{0} + 5s), 0);
  most.add(Time{0} + 10s, 0.7);
  most.add(Time{0} + 20s, 0.2);
  EXPECT_EQ(most.most(Time{0} + 59s), 0.7);
  most.add(Time{0} + 61s, 0.3);
  EXPECT_EQ(most.most(Time{0} + 119s), 0.7) << "of the minute before";
  EXPECT_EQ(most.most(Time{0} + 121s), 0.3);
  EXPECT_EQ(most.most(Time{0} + 181s), 0);
  most.add(Time{0} + 600s, 0.1);
  EXPECT_EQ(most.most(Time{0} + 600s), 0.1);
}

// Against all values: none of the newest minute is missed, and none older than two is there.
TEST(RecentMax, IsTheMostOfOneMinuteAtLeastAndOfTwoAtMost) {
  for_seeds(50, [](std::uint64_t seed) {
    Rng rng(seed);
    RecentMax most;
    std::deque<std::pair<Time, double>> all;
    Time now{0};
    for (int i = 0; i < 300; ++i) {
      now = now + Duration(1s) * static_cast<std::int64_t>(rng.below(rng.below(20) > 0 ? 20 : 400));
      if (rng.below(3) > 0) {
        all.emplace_back(now, static_cast<double>(1 + rng.below(100)));
        most.add(now, all.back().second);
      }
      double one = 0, two = 0;
      for (const auto& [at, value] : all) {
        if (now - at < 1min) one = std::max(one, value);
        if (now - at < 2min) two = std::max(two, value);
      }
      ASSERT_GE(most.most(now), one);
      ASSERT_LE(most.most(now), two);
    }
  });
}

}  // namespace
}  // namespace tandem
