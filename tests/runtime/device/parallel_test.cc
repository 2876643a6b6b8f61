#include "runtime/device/parallel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/rng.h"

namespace tandem::device {
namespace {

using Range = std::pair<std::int64_t, std::int64_t>;

// Which ranges were run; each slot is written by one thread only.
std::set<Range> ranges(ThreadPool* pool, std::int64_t count, std::int64_t grain) {
  std::vector<std::atomic<std::int64_t>> ends(static_cast<std::size_t>(count));
  parallel_for(pool, count, grain, [&](std::int64_t begin, std::int64_t end) {
    ends[static_cast<std::size_t>(begin)] += end;
  });
  std::set<Range> all;
  for (std::int64_t i = 0; i < count; ++i) {
    if (ends[static_cast<std::size_t>(i)] != 0) all.emplace(i, ends[static_cast<std::size_t>(i)]);
  }
  return all;
}

TEST(Parallel, RangesDependOnCountAndGrainAlone) {  // PA-1
  ThreadPool one(1), two(2), four(4);
  for (const std::int64_t count : {0, 1, 7, 8, 9, 1000}) {
    std::set<Range> expected;
    for (std::int64_t i = 0; i < count; i += 8) expected.emplace(i, std::min(i + 8, count));
    for (ThreadPool* pool : {static_cast<ThreadPool*>(nullptr), &one, &two, &four}) {
      EXPECT_EQ(ranges(pool, count, 8), expected);
    }
  }
}

TEST(Parallel, OneThreadRunsInOrderInTheCaller) {  // PA-2
  ThreadPool one(1);
  EXPECT_EQ(one.threads(), 1);
  const std::thread::id caller = std::this_thread::get_id();
  std::vector<std::int64_t> begins;
  parallel_for(&one, 10, 3, [&](std::int64_t begin, std::int64_t) {
    begins.push_back(begin);
    EXPECT_EQ(std::this_thread::get_id(), caller);
  });
  EXPECT_EQ(begins, (std::vector<std::int64_t>{0, 3, 6, 9}));
}

// Many short calls in a row: an index taken late from a call that has ended would be counted twice
// or hit a dead body.
TEST(Parallel, EveryIndexOfEveryCallRunsOnceBeforeTheCallReturns) {
  ThreadPool pool(4);
  Rng rng(3);
  for (int call = 0; call < 3000; ++call) {
    const auto count = static_cast<std::int64_t>(rng.below(20));
    std::vector<std::atomic<int>> hits(static_cast<std::size_t>(count));
    parallel_for(&pool, count, 1, [&](std::int64_t begin, std::int64_t) {
      hits[static_cast<std::size_t>(begin)].fetch_add(1, std::memory_order_relaxed);
    });
    for (const auto& hit : hits) ASSERT_EQ(hit.load(std::memory_order_relaxed), 1);
  }
}

TEST(Parallel, OtherThreadsHelp) {
  ThreadPool pool(2);
  std::atomic<int> inside{0};
  // Each of the two ranges waits for the other: only two threads can end this.
  parallel_for(&pool, 2, 1, [&](std::int64_t, std::int64_t) {
    inside.fetch_add(1);
    while (inside.load() < 2) std::this_thread::yield();
  });
  EXPECT_EQ(inside.load(), 2);
}

}  // namespace
}  // namespace tandem::device
