// The order of an update's phases, and what follows from failures.
#include "actors/rollout/external/weight_push.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/rng.h"
#include "tests/seeds.h"

namespace tandem::rollout {
namespace {

constexpr std::array kProbedOrder{PushPhase::kPause,  PushPhase::kAbandon, PushPhase::kConnect,
                                  PushPhase::kStart,  PushPhase::kSend,    PushPhase::kFinish,
                                  PushPhase::kResume, PushPhase::kProbe};
constexpr std::array kPushOrder{PushPhase::kPause, PushPhase::kAbandon, PushPhase::kConnect,
                                PushPhase::kStart, PushPhase::kSend,    PushPhase::kFinish,
                                PushPhase::kResume};
const Error kRefused{ErrorCode::kFailed, "500"};

// The phases that are performed where those of `failing` fail, each as often as it is listed.
std::string performed(std::vector<PushPhase> failing,
                      std::span<const PushPhase> order = kPushOrder) {
  WeightPush push(order);
  std::string phases;
  while (const auto phase = push.next()) {
    phases += std::string(phases.empty() ? "" : " ") + std::string(spelling(*phase));
    const auto fails = std::ranges::find(failing, *phase);
    if (fails == failing.end()) {
      push.succeeded();
    } else {
      failing.erase(fails);
      push.failed(kRefused);
    }
  }
  EXPECT_NE(push.done(), push.failure().has_value()) << "WU-2, WU-3";
  return phases + (push.done() ? ", done" : ", failed");
}

TEST(WeightPush, GoesThroughItsPhasesOnce) {
  EXPECT_EQ(performed({}), "pause connect start send finish resume, done");
}

TEST(WeightPush, APushThatFailsIsMadeOnceMoreBeforeTheServerGoesOn_WU1) {
  using enum PushPhase;
  EXPECT_EQ(performed({kConnect}), "pause connect abandon connect start send finish resume, done");
  EXPECT_EQ(performed({kStart}),
            "pause connect start abandon connect start send finish resume, done");
  EXPECT_EQ(performed({kSend}),
            "pause connect start send abandon connect start send finish resume, done");
  EXPECT_EQ(performed({kFinish}),
            "pause connect start send finish abandon connect start send finish resume, done");
  EXPECT_EQ(performed({kSend, kAbandon}),
            "pause connect start send abandon connect start send finish resume, done")
      << "what is left of a push may be nothing";
}

TEST(WeightPush, AProbeThatFailsPausesTheServerAgain_WU2) {
  using enum PushPhase;
  EXPECT_EQ(performed({kProbe}, kProbedOrder),
            "pause connect start send finish resume probe "
            "pause abandon connect start send finish resume probe, done");
  EXPECT_EQ(performed({kSend, kProbe}, kProbedOrder),
            "pause connect start send abandon connect start send finish resume probe, failed");
}

TEST(WeightPush, AConnectionIsUsedAgainUntilAPushHasFailed) {
  constexpr PushPhase kConnected[] = {PushPhase::kPause,   PushPhase::kRanks, PushPhase::kMeet,
                                      PushPhase::kConnect, PushPhase::kSend,  PushPhase::kResume};
  WeightPush push(kConnected, true);
  const auto expect_next = [&](PushPhase phase) { EXPECT_EQ(push.next(), phase); };
  expect_next(PushPhase::kPause);
  push.succeeded();
  expect_next(PushPhase::kSend);
  push.failed(Error{});
  for (const PushPhase phase : {PushPhase::kRanks, PushPhase::kMeet, PushPhase::kConnect,
                                PushPhase::kSend, PushPhase::kResume}) {
    expect_next(phase);
    push.succeeded();
  }
  EXPECT_TRUE(push.done());
}

TEST(WeightPush, GivesUpInTheEnd_WU3) {
  using enum PushPhase;
  EXPECT_EQ(performed({kSend, kSend}),
            "pause connect start send abandon connect start send, failed");
  EXPECT_EQ(performed({kSend, kFinish}),
            "pause connect start send abandon connect start send finish, failed");
  EXPECT_EQ(performed({kPause}), "pause pause connect start send finish resume, done");
  EXPECT_EQ(performed({kPause, kPause}), "pause pause, failed");
  EXPECT_EQ(performed({kResume, kResume}), "pause connect start send finish resume resume, failed");
  WeightPush push(kPushOrder);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(push.next());
    push.failed(kRefused);
  }
  EXPECT_NE(push.failure()->message.find("(pause): 500"), std::string::npos)
      << push.failure()->message;
}

// Whatever fails: the server goes on only after a push of which each phase succeeded.
TEST(WeightPush, NeverGoesOnWithoutAWholePush_WU1_WU2) {
  for_seeds(200, [](std::uint64_t seed) {
    Rng rng(seed);
    WeightPush push(kPushOrder);
    std::size_t succeeded_in_a_row = 0;
    int performed = 0;
    while (const auto phase = push.next()) {
      ASSERT_LT(++performed, 30) << "it ends";
      if (*phase == PushPhase::kConnect) succeeded_in_a_row = 0;
      const std::size_t wanted = *phase == PushPhase::kResume ? 4 : 0;
      ASSERT_GE(succeeded_in_a_row, wanted) << "WU-1";
      if (rng.below(3) == 0) {
        push.failed(kRefused);
      } else {
        push.succeeded();
        ++succeeded_in_a_row;
      }
    }
    EXPECT_NE(push.done(), push.failure().has_value());
  });
}

}  // namespace
}  // namespace tandem::rollout
