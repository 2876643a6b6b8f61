#include "actors/main/turn_watch.h"

#include <gtest/gtest.h>

#include <semaphore>
#include <thread>

#include "scheduler/fleet/hang_timeout.h"

namespace tandem::app {
namespace {

using namespace std::chrono_literals;

class Turns : public testing::Test {
 protected:
  ~Turns() override { executor.stop(); }
  // Waits for the end of `function` on a thread of the executor.
  void run(const std::function<void()>& function) {
    executor.at(steady_now(), [&] {
      function();
      done.release();
    });
    done.acquire();
  }
  // The time that passes until a handler counts as hung, by a clock that only this test moves.
  Duration until_hung() {
    const Time begin = now;
    while (!watch.hung(now) && now - begin < 2 * scheduler::kHungAfterInLoad)
      now = now + link::Stillness::kLookMax;
    return now - begin;
  }
  // Whether no handler is under way. The last one that told of its end may be ending still.
  bool all_end() {
    const Time limit = steady_now() + 10s;
    while (watch.hung(now) && steady_now() < limit) std::this_thread::yield();
    return !watch.hung(now);
  }
  // A handler that waits for the test: after entered() it may leave().
  void wait_here() {
    entered.release();
    leave.acquire();
  }

  std::counting_semaphore<> done{0}, entered{0}, leave{0};
  TurnWatch watch{2, [] { return Duration{}; }};
  actor::ThreadedExecutor executor{2, 1, watch.on_turn()};
  Time now = steady_now();
};

TEST_F(Turns, OneThatDoesNotEndIsFoundOut) {
  executor.at(steady_now(), [&] { wait_here(); });
  entered.acquire();
  EXPECT_GE(until_hung(), scheduler::kHungAfterInLoad) << "nothing is known of the first ones";
  leave.release();
  for (std::uint64_t i = 0; i < 4 * scheduler::kPiecesKnown; ++i) run([] {});
  EXPECT_TRUE(all_end());

  executor.at(steady_now(), [&] { wait_here(); });
  entered.acquire();
  const Duration found = until_hung();
  EXPECT_GE(found, scheduler::kHungFloorOfDisks);
  EXPECT_LT(found, scheduler::kHungAfterInLoad);
  leave.release();
  executor.stop();
  EXPECT_FALSE(watch.hung(now + 24h));
}

TEST_F(Turns, OneThatReadsDataMayTakeAsLongAsALoad) {
  for (std::uint64_t i = 0; i < 4 * scheduler::kPiecesKnown; ++i) run([] {});
  executor.at(steady_now(), [&] {
    {
      const TurnWatch::Reading reading;
      wait_here();
    }
    wait_here();
  });
  entered.acquire();
  EXPECT_GE(until_hung(), scheduler::kHungAfterInLoad);
  leave.release();
  entered.acquire();
  EXPECT_LT(until_hung(), scheduler::kHungAfterInLoad) << "it reads no more";
  leave.release();
}

TEST_F(Turns, EachMessageOfATurnIsAPieceOfItsOwn) {
  for (std::uint64_t i = 0; i < 4 * scheduler::kPiecesKnown; ++i) run([] {});
  executor.at(steady_now(), [&] {
    wait_here();
    executor.handled();
    wait_here();
  });
  entered.acquire();
  EXPECT_GE(until_hung(), scheduler::kHungFloorOfDisks);
  leave.release();
  entered.acquire();
  EXPECT_FALSE(watch.hung(now));
  leave.release();
}

}  // namespace
}  // namespace tandem::app
