#include "runtime/sandbox/workers.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <future>

#include "tests/runtime/patience.h"

namespace tandem::sandbox {
namespace {

TEST(Workers, DoAllWorkBesideEachOther) {
  Workers workers(2);
  std::promise<void> first_runs, second_runs;
  std::promise<bool> met;
  workers.post([&](int) {
    first_runs.set_value();
    met.set_value(second_runs.get_future().wait_for(kPatience) == std::future_status::ready);
  });
  workers.post([&](int) {
    first_runs.get_future().wait();
    second_runs.set_value();
  });
  EXPECT_TRUE(met.get_future().get());
}

TEST(Workers, AnEndStopsWhatRunsAndDropsWhatWaits) {
  std::atomic<int> stopped = 0, begun = 0;
  {
    std::promise<void> runs;
    Workers workers(1);
    workers.post([&](int stop) {
      runs.set_value();
      pollfd end{stop, POLLIN, 0};
      stopped += poll(&end, 1, static_cast<int>(std::chrono::milliseconds(kPatience).count()));
    });
    workers.post([&](int) { ++begun; });
    runs.get_future().wait();
  }
  EXPECT_EQ(stopped, 1);
  EXPECT_EQ(begun, 0);
}

}  // namespace
}  // namespace tandem::sandbox
