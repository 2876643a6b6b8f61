// TW-1 and TW-2 on a model of a link that loses everything at random moments, seeds printed.
#include "runtime/weights/fetch_window.h"

#include <gtest/gtest.h>

#include "runtime/base/rng.h"
#include "runtime/weights/tcp_messages.h"

namespace tandem::weights {
namespace {

using Range = FetchWindow::Range;

TEST(FetchWindow, AsksForAQuarterOfABucketAtATimeAndNoMoreThanABucket) {
  FetchWindow window(100, 40);
  for (const std::uint64_t offset : {0, 10, 20, 30}) {
    EXPECT_EQ(window.next(), (Range{offset, 10}));
    window.asked(1);
  }
  EXPECT_EQ(window.next(), std::nullopt);
  EXPECT_TRUE(window.arrived({0, 10}));
  EXPECT_EQ(window.next(), (Range{40, 10}));
}

TEST(FetchWindow, ChunksHaveLimitsAndTheLastOneIsWhatIsLeft) {
  EXPECT_EQ(FetchWindow(1ull << 40, 1ull << 40).next(), (Range{0, kWeightChunkBytesMax}));
  EXPECT_EQ(FetchWindow(7, 1).next(), (Range{0, 1}));
  FetchWindow window(25, 40);
  for (int i = 0; i < 3; ++i) window.asked(1);
  EXPECT_EQ(window.next(), std::nullopt);
  EXPECT_TRUE(window.arrived({0, 10}));
  EXPECT_TRUE(window.arrived({10, 10}));
  EXPECT_TRUE(window.waits());
  EXPECT_TRUE(window.arrived({20, 5}));
  EXPECT_FALSE(window.waits());
  EXPECT_EQ(window.next(), std::nullopt);

  FetchWindow wide(1ull << 40, 1ull << 40);
  std::size_t asked = 0;
  for (; wide.next(); ++asked) wide.asked(1);
  EXPECT_EQ(asked, kWeightChunksMax);
}

TEST(FetchWindow, TW1NothingIsTakenThatIsNotDue) {
  FetchWindow window(100, 40);
  EXPECT_FALSE(window.arrived({0, 10})) << "was not asked for";
  window.asked(1);
  window.asked(1);
  EXPECT_FALSE(window.arrived({10, 10})) << "after a gap";
  EXPECT_FALSE(window.arrived({0, 9}));
  EXPECT_TRUE(window.arrived({0, 10}));
  EXPECT_FALSE(window.arrived({0, 10})) << "twice";
  EXPECT_TRUE(window.arrived({10, 10}));
}

TEST(FetchWindow, TW2OnlyTheAnswerToALaterProbeShowsALoss) {
  FetchWindow window(100, 40);
  window.asked(3);
  window.asked(4);
  window.answered(3);
  EXPECT_EQ(window.next(), (Range{20, 10})) << "asked for again without need";
  window.answered(4);
  EXPECT_EQ(window.next(), (Range{0, 10}));
}

// Requests and probes go over a link in order, which loses all that is on it when it is cut.
TEST(FetchWindow, TW1AndTW2HoldWhereverTheLinkIsCut) {
  struct Sent {
    Range chunk;
    std::uint64_t probe = 0;  // not 0: a probe
  };
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    const std::uint64_t total = 1 + rng.below(2000);
    FetchWindow window(total, 1 + rng.below(300));
    std::deque<Sent> link;
    const bool sound = seed % 2 == 0;
    std::uint64_t probe = 0, arrived = 0, lost_bytes = 0, asked_bytes = 0;
    for (int step = 0; arrived < total; ++step) {
      ASSERT_LT(step, 1'000'000) << "it does not end";
      const std::uint64_t what = rng.below(100);
      const auto next = window.next();
      if (what < 1 && !sound) {
        for (const Sent& sent : link) lost_bytes += sent.chunk.bytes;
        link.clear();
      } else if (what < 20) {
        link.push_back({.chunk = {}, .probe = ++probe});
      } else if (what < 60 && next) {
        link.push_back({.chunk = *next});
        asked_bytes += next->bytes;
        window.asked(probe);
      } else if (!link.empty()) {
        const Sent sent = link.front();
        link.pop_front();
        if (sent.probe > 0) {
          window.answered(sent.probe);
        } else if (window.arrived(sent.chunk)) {
          ASSERT_EQ(sent.chunk.offset, arrived);
          arrived += sent.chunk.bytes;
        } else {
          lost_bytes += sent.chunk.bytes;  // it came after a gap
        }
      }
    }
    for (const Sent& sent : link) lost_bytes += sent.chunk.bytes;
    EXPECT_EQ(asked_bytes, total + lost_bytes);
    EXPECT_TRUE(!sound || asked_bytes == total);
  }
}

}  // namespace
}  // namespace tandem::weights
