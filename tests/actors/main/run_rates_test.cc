// The rates of a live job, by an API that the test plays.
#include "actors/main/run_rates.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <sstream>

#include "actors/exchange/fleet_json.h"
#include "runtime/base/json.h"
#include "tests/actors/model/tiny_model.h"

namespace tandem::app {
namespace {

using nlohmann::json;

// The job "sums-1", of whose rollouts two have a rate.
class LiveJobRates : public testing::Test {
 protected:
  LiveJobRates() {
    ::setenv("TANDEM_HOME", model::testing::scratch_folder("run_rates").c_str(), 1);
    ::unsetenv("TANDEM_ADDRESS");
  }
  ~LiveJobRates() override { ::unsetenv("TANDEM_HOME"); }

  static json job(int desired, int ready) {
    const scheduler::FleetRates rates{
        .steps = 50,
        .seconds = 100,
        .rollouts = {{.actor = "sums-1/rollout/0", .tokens_per_s = 1000, .busy_fraction = 1},
                     {.actor = "sums-1/rollout/1", .tokens_per_s = 1000, .busy_fraction = 1}},
        .step_seconds = 1,
        .step_tokens = 5120,
        .completions_per_step = 512,
        .prefix_hit_ratio = {}};
    return {{"id", "sums-1"},
            {"name", "sums"},
            {"state", "Running"},
            {"live", true},
            {"actors", {{"rollout", {{"desired", desired}, {"ready", ready}}}}},
            {"rates", exchange::rates_json(rates)}};
  }
  static Result<RunRates> read(const json& job) {
    const auto answer = [job](const http::HttpRequest& request) -> http::HttpAnswer {
      const auto& path = request.segments;  // api, v1, kind, id, part
      json body = json::array();
      if (path[2] == "jobs") body = path.size() == 3 ? json::array({job}) : job;
      if (path[2] == "runs" && path.size() == 4) body = {{"id", "sums-1"}};
      if (path.size() == 5)
        body = {{"config",
                 {{{"key", "learner.ranks"}, {"value", "1"}},
                  {{"key", "rollout.replicas"}, {"value", "1"}},
                  {{"key", "rollout.n"}, {"value", "8"}},
                  {{"key", "data.train_batch_size"}, {"value", "64"}}}}};
      return http::HttpResponse{.body = body.dump()};
    };
    std::ostringstream out, err;
    const cli::Console console{.out = out, .err = err};
    return read_run_rates({.console = console, .offline = [&] { return answer; }}, "sums-1");
  }
};

// A rollout that has too little to do has no rate, and is one of the fleet all the same.
TEST_F(LiveJobRates, AreOfTheRolloutsThatAreReady) {
  const auto idle = read(job(3, 3));
  ASSERT_TRUE(idle) << idle.error().message;
  EXPECT_TRUE(idle->live);
  EXPECT_EQ(idle->rates.rollouts.size(), 2u);
  EXPECT_EQ(idle->plan.replicas, 3);
  EXPECT_EQ(idle->unsettled, "");
}

TEST_F(LiveJobRates, AreNotSettledWhileAnotherNumberIsWanted) {
  const auto grows = read(job(2, 1));
  ASSERT_TRUE(grows) << grows.error().message;
  EXPECT_EQ(grows->plan.replicas, 1);
  EXPECT_EQ(grows->unsettled, "2 rollouts are wanted, and these rates are of 1");
  const auto shrinks = read(job(1, 3));
  ASSERT_TRUE(shrinks) << shrinks.error().message;
  EXPECT_EQ(shrinks->unsettled, "1 rollout is wanted, and these rates are of 3");
}

}  // namespace
}  // namespace tandem::app
