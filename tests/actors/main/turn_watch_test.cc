#include "actors/main/turn_watch.h"

#include <gtest/gtest.h>

#include <semaphore>

#include "scheduler/fleet/hang_timeout.h"

namespace tandem::app {
namespace {

using namespace std::chrono_literals;

constexpr Duration kLook = link::Stillness::kLookMax;

class Turns : public testing::Test {
 protected:
  // Waits for the end of `function` on a thread of the executor.
  void run(const std::function<void()>& function) {
    threads.executor.at(steady_now(), [&] {
      function();
      done.release();
    });
    done.acquire();
  }
  // The time that passes until a turn counts as hung, by a clock that only this test moves.
  Duration until_hung() {
    const Time begin = now;
    while (!threads.watch.hung(now) && now - begin < 2 * scheduler::kHungAfterInLoad)
      now = now + kLook;
    return now - begin;
  }

  std::counting_semaphore<> done{0}, entered{0}, leave{0};
  WatchedExecutor threads{2, 1};
  Time now = steady_now();
};

TEST_F(Turns, OneThatDoesNotEndIsFoundOut) {
  // Of a process that has just begun nothing is known: the data of a job may be read.
  threads.executor.at(steady_now(), [&] {
    entered.release();
    leave.acquire();
    done.release();
  });
  entered.acquire();
  EXPECT_EQ(until_hung() / 1min, scheduler::kHungAfterInLoad / 1min);
  leave.release();
  done.acquire();
  for (std::uint64_t i = 0; i < 2 * scheduler::kPiecesKnown; ++i) run([] {});
  EXPECT_FALSE(threads.watch.hung(now)) << "it has ended";

  threads.executor.at(steady_now(), [&] {
    entered.release();
    leave.acquire();
    TurnWatch::beat();
    entered.release();
    leave.acquire();
  });
  entered.acquire();
  const Duration found = until_hung();
  EXPECT_GE(found, scheduler::kHungFloorOfDisks);
  EXPECT_LT(found, scheduler::kHungFloorOfDisks * 2);
  leave.release();
  entered.acquire();
  EXPECT_FALSE(threads.watch.hung(now)) << "it says that it makes progress";
  leave.release();
  threads.executor.stop();
  EXPECT_FALSE(threads.watch.hung(now + 24h));
}

}  // namespace
}  // namespace tandem::app
