#include "actors/main/cli/job_progress.h"

#include <gtest/gtest.h>

#include "runtime/base/json.h"

namespace tandem::app {
namespace {

using nlohmann::json;

TEST(JobProgress, AJobOfActorsAloneHasNoFiguresOfTraining) {
  const json job{{"id", "demo-1"},
                 {"state", "Running"},
                 {"reason", "Working"},
                 {"trains", false},
                 {"actors", {{"counter", {{"ready", 1}, {"desired", 2}}}}},
                 {"run_dir", "/runs/demo-1"},
                 {"why", json::array()}};
  EXPECT_EQ(live_bar(job, 200), "demo-1  Running  counter 1/2\n");
  EXPECT_EQ(live_line(job), "job=demo-1 state=Running counter=1/2");
  const json result{{"state", "Succeeded"},
                    {"wall_seconds", 3},
                    {"actors", {{"counter", {{"actors", 2}, {"finished", 2}, {"restarts", 1}}}}}};
  const std::string summary = final_summary(job, result);
  EXPECT_TRUE(summary.starts_with("demo-1 Succeeded in 3s\n")) << summary;
  EXPECT_NE(summary.find("2 actors, 2 finished, 1 restarts"), std::string::npos) << summary;
  EXPECT_EQ(summary.find("tokens"), std::string::npos) << summary;
}

}  // namespace
}  // namespace tandem::app
