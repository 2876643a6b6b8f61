// `tandem simulate --from`: what a run has measured, as its own job file says that it ran.
#include "actors/main/simulate_command.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>

#include "actors/exchange/fleet_json.h"
#include "actors/main/offline_runs.h"
#include "actors/main/verbs.h"
#include "runtime/base/json.h"
#include "tests/actors/cli/command_outcome.h"
#include "tests/actors/model/tiny_model.h"

namespace tandem::app {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class SimulateFromRun : public testing::Test {
 protected:
  SimulateFromRun() {
    ::setenv("TANDEM_HOME", home_.c_str(), 1);
    ::unsetenv("TANDEM_ADDRESS");
  }
  ~SimulateFromRun() override { ::unsetenv("TANDEM_HOME"); }

  static std::string job(int threads) {
    const std::string each = std::to_string(threads);
    return "name: sums\nmodel: {path: /none}\n"
           "data: {train_files: [/none.jsonl], train_batch_size: 4}\n"
           "rollout: {n: 4, replicas: 1}\nreward: {type: exact}\n"
           "learner: {total_training_steps: 10}\n"
           "pools: {rollout: {threads_per_actor: " +
           each + "}, learner: {threads_per_actor: " + each + "}}\n";
  }
  // One whose learner and rollout were always at work, of so many threads each.
  void make_run(const std::string& id, int threads) const {
    const fs::path run = home_ / "runs" / id;
    fs::create_directories(run / "logs");
    model::testing::write_text(run / "job.yaml", job(threads));
    const scheduler::FleetRates rates{
        .steps = 50,
        .seconds = 100,
        .rollouts = {{.actor = id + "/rollout/0", .tokens_per_s = 200, .busy_fraction = 1}},
        .step_seconds = 2,
        .step_tokens = 320,
        .completions_per_step = 16,
        .engine = {.step_s = 0.01, .sequence_s = 0.001},
        .prefix_hit_ratio = {}};
    std::ofstream(run / "result.json")
        << json{{"state", "Succeeded"}, {"steps", 50}, {"rates", exchange::rates_json(rates)}};
  }
  // Of this job on the costs of that run, on four cores in both.
  double seconds_per_step(const std::string& run, int threads) const {
    const fs::path file = home_ / "job.yaml";
    model::testing::write_text(file, job(threads));
    const cli::Outcome done = cli::run({"simulate", file.c_str(), "--from", run.c_str(), "--cores",
                                        "4", "--lengths", "constant(20)", "-o", "json"},
                                       {.offline = offline_answers, .verbs = all_verbs});
    EXPECT_TRUE(done.ok) << done.shown;
    const json variants = done.ok ? parse_json(done.out) : json();
    return variants.empty() ? 0 : variants[0]["seconds"].get<double>() / 10;
  }
  const fs::path home_ = model::testing::scratch_folder("simulate_command");
};

// The same figures say of actors that shared the cores that they are quicker alone, and of actors
// that had cores to themselves that they are not, whatever the threads of the job to forecast.
TEST_F(SimulateFromRun, CostsAreTakenApartByTheThreadsOfTheRun) {
  make_run("apart-1", 1);
  make_run("shared-1", 4);
  const double apart = seconds_per_step("apart-1", 1);
  EXPECT_GT(apart, 1.9) << "as measured";
  EXPECT_LT(seconds_per_step("shared-1", 1), 0.75 * apart);
  EXPECT_GT(seconds_per_step("apart-1", 4), 1.1 * apart) << "now they share the cores";
}

}  // namespace
}  // namespace tandem::app
