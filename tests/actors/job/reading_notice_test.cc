#include "actors/job/reading_notice.h"

#include <gtest/gtest.h>

namespace tandem::job {
namespace {

TEST(ReadingNotice, ComesAfterTwoSecondsAndThenEveryFive) {
  const Time began{1'000};
  ReadingNotice notice(began);
  const ReadingProgress progress{.file = "/data/train.jsonl",
                                 .records = 1'200'000,
                                 .bytes = 351'000'000,
                                 .bytes_total = 650'000'000};
  const auto at = [&](double seconds) {
    return notice.due(progress, began + std::chrono::duration_cast<Duration>(
                                            std::chrono::duration<double>(seconds)));
  };
  EXPECT_EQ(at(0), std::nullopt);
  EXPECT_EQ(at(1.9), std::nullopt);
  EXPECT_EQ(at(2), "reading train.jsonl: 1200000 records, 54 % of 650 MB");
  EXPECT_EQ(at(6.9), std::nullopt);
  EXPECT_TRUE(at(7));
  EXPECT_FALSE(at(11.9));
  EXPECT_TRUE(at(30));
}

TEST(ReadingNotice, SaysWhatAFileWaitsFor) {
  ReadingNotice notice{Time{0}};
  const ReadingProgress progress{.file = "/data/train.parquet", .waits = "waits for another one"};
  EXPECT_FALSE(notice.due(progress, Time{0} + ReadingNotice::kSilentFor / 2));
  EXPECT_EQ(notice.due(progress, Time{0} + ReadingNotice::kSilentFor),
            "reading train.parquet: waits for another one");
}

}  // namespace
}  // namespace tandem::job
