// Tests the output of a command that waits for a job: a bar on a terminal, else lines.
#include "actors/cli/progress_display.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

namespace tandem::cli {
namespace {

using namespace std::chrono_literals;

nlohmann::json job(const char* state, int step) {
  return {{"id", "arith-1"}, {"state", state}, {"step", step}, {"total_steps", 9}};
}

TEST(ProgressDisplay, OffATerminalALinePerChangeOfStateAndElseEveryFiveSeconds) {
  std::ostringstream out, err;
  ProgressDisplay display(out, err, false, nullptr);
  const auto lines = [&err] { return std::ranges::count(err.str(), '\n'); };
  display.show(job("Starting", 0), Time{} + 0s);
  EXPECT_EQ(lines(), 1);
  display.show(job("Running", 0), Time{} + 1s);
  EXPECT_EQ(lines(), 2) << "another state";
  for (int step = 1; step <= 4; ++step)
    display.show(job("Running", step), Time{} + (1s + step * 1s));
  EXPECT_EQ(lines(), 2);
  display.show(job("Running", 5), Time{} + 6s);
  EXPECT_EQ(lines(), 3) << "five seconds later";
  display.show(job("Running", 5), Time{} + 60s);
  EXPECT_EQ(lines(), 3) << "nothing new";
  display.show(job("Running", 6), Time{} + 61s, true);
  EXPECT_EQ(lines(), 4) << "the last one";
  EXPECT_EQ(out.str(), "") << "a pipe gets data alone";
}

TEST(ProgressDisplay, OnATerminalTheBarIsDrawnInPlaceAndTakenAway) {
  std::ostringstream out, err;
  ProgressDisplay display(out, err, true, [] { return 80; });
  display.show(job("Running", 1), Time{} + 0s);
  const auto drawn = std::ranges::count(out.str(), '\n');
  ASSERT_GT(drawn, 0);
  out.str("");
  display.erase();
  std::string erased;
  for (auto line = drawn; line > 0; --line) erased += "\x1b[1A\x1b[2K";
  EXPECT_EQ(out.str(), erased);
  display.erase();
  EXPECT_EQ(out.str(), erased) << "once";
  EXPECT_EQ(err.str(), "");
}

}  // namespace
}  // namespace tandem::cli
