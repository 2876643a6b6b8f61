#include "actors/cli/fleet_view.h"

#include <gtest/gtest.h>

#include "actors/cli/table.h"
#include "runtime/base/json.h"
#include "tests/actors/cli/api_objects.h"

namespace tandem::cli {
namespace {

using nlohmann::json;

json a_matched_job() {
  json job = a_job();
  job["rates"] = {{"steps", 16},
                  {"seconds", 42.5},
                  {"rollouts",
                   {{{"actor", "arith-1/rollout/0"}, {"tokens_per_s", 1190.0}},
                    {{"actor", "arith-1/rollout/1"}, {"tokens_per_s", 1310.0}}}},
                  {"step_seconds", 0.8125},
                  {"step_tokens", 12'300.0},
                  {"completions_per_step", 64.0},
                  {"generated_per_trained", 1.046},
                  {"install_seconds", 0.048},
                  {"prefix_hit_ratio", nullptr},
                  {"trainer_idle_fraction", 0.312},
                  {"rollout_idle_fraction", 0.02},
                  {"rollout_deaths", 1}};
  job["predicted"] = {{"trainer_idle_fraction", 0.29},
                      {"rollout_idle_fraction", 0.0},
                      {"rollouts_matched", 3},
                      {"rollouts", 2}};
  return job;
}

TEST(FleetView, MeasuredStandsBesidePredicted) {
  EXPECT_EQ(fleet_lines(a_matched_job(), kUnlimitedWidth),
            "                                  MEASURED  PREDICTED\n"
            "trainer idle                           31%        29%\n"
            "rollouts idle                           2%         0%\n"
            "rollouts                              2 up    3 match\n"
            "tokens/s of a rollout  1.2k (1.2k to 1.3k)\n"
            "trainer's step                     0.812 s\n"
            "tokens of a step                     12.3k\n"
            "generated per trained                 1.05\n"
            "pause of an install                0.048 s\n"
            "prefix hits                              -\n"
            "rollout deaths                           1\n"
            "over steps                              16\n");
  expect_fits(fleet_lines(a_matched_job(), 40), 40);
}

TEST(FleetView, WhatIsNotMeasuredIsNotShown) {
  EXPECT_EQ(fleet_lines(a_job(), 80), "");
  EXPECT_EQ(idle_of(a_job()), "-");
  json job = a_matched_job();
  EXPECT_EQ(idle_of(job), "31/29%");
  job["predicted"] = nullptr;
  job["rates"]["rollouts"] = json::array();
  EXPECT_EQ(idle_of(job), "-");
  EXPECT_NE(fleet_lines(job, 80).find("trainer idle"), std::string::npos);
}

}  // namespace
}  // namespace tandem::cli
