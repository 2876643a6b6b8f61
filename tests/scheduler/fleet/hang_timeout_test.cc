#include "scheduler/fleet/hang_timeout.h"

#include <gtest/gtest.h>

namespace tandem::scheduler {
namespace {

using namespace std::chrono_literals;

TEST(HangTimeout, HT1AnIdleProcessMayWaitForEver) {
  EXPECT_EQ(hang_timeout("idle"), std::nullopt);
  EXPECT_FALSE(is_hung("idle", 24h * 365));
}

TEST(HangTimeout, WorkHasAMinuteAndASaveMore) {
  for (const char* phase : {"decode", "train", "load", "a phase of a later version"}) {
    EXPECT_FALSE(is_hung(phase, 60s - 1ns)) << phase;
    EXPECT_TRUE(is_hung(phase, 60s)) << phase;
  }
  EXPECT_FALSE(is_hung("save", 15min - 1ns));
  EXPECT_TRUE(is_hung("save", 15min));
}

}  // namespace
}  // namespace tandem::scheduler
