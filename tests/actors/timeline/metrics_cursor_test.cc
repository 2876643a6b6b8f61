// The figures of ascending steps from metrics.jsonl.
#include "actors/timeline/metrics_cursor.h"

#include <gtest/gtest.h>

#include "tests/actors/runs/run_folder.h"

namespace tandem::timeline {
namespace {

TEST(MetricsCursorTest, HasTheFiguresOfAscendingSteps) {
  const runs::RunFolder folder;
  const auto run = folder.run("a-1");
  runs::RunFolder::append(run / "metrics.jsonl",
                          "{\"eval\":\"before\",\"step\":2,\"timing_s/update_weights\":9}\n"
                          "{\"step\":1,\"timing_s/update_weights\":0.5}\n"
                          "no object\n"
                          "{\"step\":3,\"tandem/install_pause_s\":0.25}\n");
  MetricsCursor cursor(run);
  EXPECT_EQ(cursor.at(1).publish_s, 0.5);
  EXPECT_EQ(cursor.at(1).install_pause_s, std::nullopt);
  EXPECT_EQ(cursor.at(2).publish_s, std::nullopt) << "the line of an evaluation, or of no step";
  EXPECT_EQ(cursor.at(3).install_pause_s, 0.25);
  EXPECT_EQ(cursor.at(1).publish_s, std::nullopt) << "it has gone by";
  EXPECT_EQ(cursor.at(4).publish_s, std::nullopt);
}

TEST(MetricsCursorTest, ReadsAFileOfSeveralPieces) {
  const runs::RunFolder folder;
  const auto run = folder.run("a-1");
  constexpr std::int64_t kSteps = 60'000;
  std::string lines;
  for (std::int64_t step = 1; step <= kSteps; ++step)
    lines += R"({"step":)" + std::to_string(step) + R"(,"timing_s/update_weights":)" +
             std::to_string(step) + R"(,"a/key/that/takes/some/room/in/the/line":0.5})" + "\n";
  runs::RunFolder::append(run / "metrics.jsonl", lines);
  MetricsCursor cursor(run);
  for (std::int64_t step = 1; step <= kSteps; step += 7)
    ASSERT_EQ(cursor.at(step).publish_s, static_cast<double>(step));
}

TEST(MetricsCursorTest, ARunWithoutTheFileHasNone) {
  const runs::RunFolder folder;
  EXPECT_EQ(MetricsCursor(folder.run("a-1")).at(1).publish_s, std::nullopt);
}

}  // namespace
}  // namespace tandem::timeline
