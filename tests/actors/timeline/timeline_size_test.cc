// Tests actors/timeline/timeline.h.
// A long run takes no more memory than its live groups do (TL-4).
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>

#include "actors/timeline/timeline.h"
#include "tests/actors/timeline/made_run.h"
#include "tests/allocations.h"

namespace tandem::timeline {
namespace {

constexpr MadeRun::Shape kLong{.rollouts = 8, .batch = 64, .live = 256, .faults = false};
constexpr std::uint64_t kGroups = 100'000;

// Calls `take` with the entries of a run of so many groups.
template <class Take>
void for_entries(const Take& take) {
  MadeRun run(7, kLong);
  while (run.admitted() < kGroups)
    for (const exchange::JournalEntry& entry : run.next()) take(entry);
}

TEST(TimelineSizeTest, MemoryIsThatOfTheLiveGroups_TL4) {
  RunSurvey survey({}, {});
  for_entries([&](const exchange::JournalEntry& entry) { survey.take(entry); });
  const auto range = survey.range();
  ASSERT_TRUE(range);
  std::string text;
  std::uint64_t bytes = 0;
  Timeline timeline(
      survey, *range, kTraceEventsMax, [](std::int64_t) { return StepFigures{}; },
      [&](const TraceEvent& event) {
        text.clear();
        append_json(event, text);
        bytes += text.size();
      });
  const std::size_t before = test::allocated_bytes();
  std::size_t most = before;
  for_entries([&](const exchange::JournalEntry& entry) {
    timeline.take(entry);
    most = std::max(most, test::allocated_bytes());
  });
  const bool full = timeline.is_full();
  timeline.end();
  EXPECT_FALSE(full) << "100,000 groups have to fit into a trace without bounds";
  EXPECT_GT(timeline.events(), kGroups * 5);
  EXPECT_LT(most - before, std::size_t{2} << 20);
  RecordProperty("events", std::to_string(timeline.events()));
  RecordProperty("bytes", std::to_string(bytes));
}

}  // namespace
}  // namespace tandem::timeline
