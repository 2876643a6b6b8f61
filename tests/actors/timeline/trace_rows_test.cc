// Rows are named once, and a lane has one owner (TL-2).
#include "actors/timeline/trace_rows.h"

#include <gtest/gtest.h>

#include <set>

namespace tandem::timeline {
namespace {

class TraceRowsTest : public testing::Test {
 protected:
  std::vector<TraceEvent> events_;
  TraceWindow window_{{}, 0, [this](const TraceEvent& event) { events_.push_back(event); }};
  TraceRows rows_{window_};
};

TEST_F(TraceRowsTest, ARowIsNamedOnce) {
  const TraceRow row = rows_.row("rollout", "rollout/0");
  const std::size_t named = events_.size();
  EXPECT_EQ(rows_.row("rollout", "rollout/0").thread, row.thread);
  EXPECT_EQ(events_.size(), named);
  EXPECT_NE(rows_.row("reward", "rollout/0").thread, row.thread);
}

TEST_F(TraceRowsTest, LanesThatOverlapDiffer_TL2) {
  std::set<std::int64_t> threads;
  std::vector<TraceLane> taken;
  for (std::size_t i = 0; i < kLanesMax; ++i) {
    taken.push_back(*rows_.take("rollout", "rollout/0"));
    threads.insert(taken.back().row.thread);
  }
  EXPECT_EQ(threads.size(), kLanesMax);
  EXPECT_FALSE(rows_.take("rollout", "rollout/0")) << "there is a limit";
  EXPECT_TRUE(rows_.take("rollout", "rollout/1")) << "of each actor";
  rows_.give_back(taken[7]);
  EXPECT_EQ(rows_.take("rollout", "rollout/0")->row.thread, taken[7].row.thread);
}

TEST(TraceRowsNameTest, IsThatOfTheRoleAndTheNumber) {
  EXPECT_EQ(short_name("job-1/rollout/12"), "rollout/12");
  EXPECT_EQ(short_name("rollout/12"), "rollout/12");
  EXPECT_EQ(short_name("odd"), "odd");
  EXPECT_EQ(short_name("/odd"), "/odd");
  EXPECT_EQ(pool_of("rollout/12"), "rollout");
  EXPECT_EQ(pool_of("phases"), kRunPool);
}

}  // namespace
}  // namespace tandem::timeline
