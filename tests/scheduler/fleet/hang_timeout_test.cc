#include "scheduler/fleet/hang_timeout.h"

#include <gtest/gtest.h>

namespace tandem::scheduler {
namespace {

using namespace std::chrono_literals;

TEST(HangTimeout, HT1AnIdleProcessMayWaitForEver) {
  EXPECT_EQ(hang_timeout("idle"), std::nullopt);
  EXPECT_FALSE(is_hung("idle", 24h * 365));
}

TEST(HangTimeout, WorkOfWhichNothingIsKnownHasAMinuteAndASaveMore) {
  for (const char* phase : {"submit", "decode", "train", "update", "commit", "train_gang",
                            "a phase of a later version"}) {
    EXPECT_FALSE(is_hung(phase, 60s - 1ns)) << phase;
    EXPECT_TRUE(is_hung(phase, 60s)) << phase;
  }
  EXPECT_FALSE(is_hung("save", 15min - 1ns));
  EXPECT_TRUE(is_hung("save", 15min));
  EXPECT_FALSE(is_hung("load", 59min));
  EXPECT_TRUE(is_hung("load", 60min));
}

PhaseHistory known(Duration longest, int hangs = 0) {
  return {.pieces = kPiecesKnown, .longest = longest, .hangs = hangs};
}

TEST(HangTimeout, QuickWorkThatIsKnownIsMissedWithinThreeSeconds) {
  EXPECT_EQ(hang_deadline("train", known(200ms)), 2500ms);
  EXPECT_TRUE(is_hung("decode", 2500ms, known(1ms)));
  EXPECT_FALSE(is_hung("decode", 2499ms, known(1ms)));
  const PhaseHistory few{.pieces = kPiecesKnown - 1, .longest = 1ms};
  EXPECT_FALSE(is_hung("decode", 59s, few)) << "the first pieces are no measure";
  EXPECT_EQ(hang_deadline("save", known(50ms)), 30s) << "a busy disk lets a sync wait for long";
  EXPECT_EQ(hang_deadline("commit", known(50ms)), 30s) << "it goes over all weights at once";
  EXPECT_EQ(hang_deadline("submit", known(1ms)), 30s) << "the next prompt may be very long";
  EXPECT_EQ(hang_deadline("train_gang", known(50ms)), 60s) << "it waits for other ranks as well";
  EXPECT_EQ(hang_deadline("publish", known(50ms)), 15min) << "it may wait for a free place";
  EXPECT_EQ(hang_deadline("load", known(2s)), 5min) << "the next one may find a busy disk";
  EXPECT_EQ(hang_deadline("restore", known(100s)), 1000s);
  EXPECT_EQ(hang_deadline("connect", {}), 2min);
  EXPECT_EQ(hang_deadline("connect", known(1ms)), 2min) << "as long as a process may take to start";
  EXPECT_EQ(hang_deadline("handler", {}), 24h);
  EXPECT_EQ(hang_deadline("handler", known(1ms)), 10min) << "a user's actor may do anything";
  EXPECT_EQ(hang_deadline("handler", known(2min)), 20min);
  EXPECT_EQ(hang_deadline("train", known(Duration::min())), kHungFloor) << "what a peer may tell";
  EXPECT_EQ(hang_deadline("idle", known(1ms)), std::nullopt) << "HT-1";
}

TEST(HangTimeout, SlowWorkHasTenTimesItsLongestPieceUpToTheGenerousDeadline_HT2) {
  EXPECT_EQ(hang_deadline("train", known(400ms)), 4s);
  EXPECT_EQ(hang_deadline("train", known(5s)), 50s);
  EXPECT_EQ(hang_deadline("train", known(7s)), 60s);
  EXPECT_EQ(hang_deadline("save", known(20s)), 200s);
  EXPECT_EQ(hang_deadline("train", known(Duration::max())), 60s);
}

TEST(HangTimeout, EachHangDoublesTheLeastDeadlineOfItsWork_HT3) {
  EXPECT_EQ(hang_deadline("train", known(1ms, 1)), 5s);
  EXPECT_EQ(hang_deadline("train", known(1ms, 3)), 20s);
  EXPECT_EQ(hang_deadline("train", known(1ms, 1000)), 60s);
  EXPECT_EQ(hang_deadline("train", known(3s, 1)), 30s);
}

}  // namespace
}  // namespace tandem::scheduler
