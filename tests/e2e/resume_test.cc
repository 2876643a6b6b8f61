// A run whose process is killed leaves no orphan, and --resume takes it up from its last
// checkpoint.
#include <gtest/gtest.h>

#include <csignal>

#include "tests/e2e/cluster_driver.h"

namespace tandem::e2e {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int kSteps = 60;

// Starts the job and kills `tandem run` itself once it has trained past its first checkpoint.
void run_and_kill(const Home& home, const Words& job) {
  Process run = home.start(Words{"run"} + job);
  const fs::path dir = home.run_dir(kSmallId);
  ASSERT_TRUE(eventually([&] { return fs::exists(dir / "checkpoints/step-10"); })) << run.err();
  run.signal(SIGKILL);
  ASSERT_EQ(run.wait().code, 128 + SIGKILL);
  EXPECT_TRUE(eventually([&] { return home.processes().empty(); })) << "ranks are left";
  ASSERT_FALSE(fs::exists(dir / "result.json")) << "it was over before the kill";
}

json resumed(const Home& home, const Words& job) {
  const Finished again =
      home.run(Words{"run"} + job + Words{"--resume", home.run_dir(kSmallId).string()});
  EXPECT_EQ(again.code, 0) << again.text();
  home.expect_nothing_left();  // nor the shared memory of the life that was killed
  const json result = home.result_of(kSmallId);
  EXPECT_EQ(result["state"], "Succeeded");
  EXPECT_EQ(result["steps"], kSteps);
  EXPECT_EQ(result["ledger"]["trained"], kSteps * kGroupsPerStep);
  expect_ledger_balances(home.run_dir(kSmallId), result);
  return result;
}

TEST(Resume, TakesUpARunThatWasKilled) {
  const Home home;
  const Words job = small_job(kSteps, {"learner.save_freq=10"});
  run_and_kill(home, job);
  const json result = resumed(home, job);
  EXPECT_EQ(result["ledger"]["discarded"], json::object());
  EXPECT_TRUE(result["eval"]["before"].is_number()) << "of the first life";
  EXPECT_TRUE(result["eval"]["final"].is_number());
  EXPECT_EQ(
      journal_value(home.run_dir(kSmallId), "SELECT count(*) FROM journal WHERE kind = 'resumed'"),
      1);
}

// With older versions gone for good, only strictly on-policy slots can be generated as before.
TEST(Resume, GivesTheSameWeightsUnderFixedLagWithoutStaleness) {
  const Words job = small_job(
      kSteps, {"learner.save_freq=10", "async.schedule=fixed_lag", "async.max_staleness=0"});
  const Home whole;
  const json reference = whole.train(kSmallId, job);
  const Home home;
  run_and_kill(home, job);
  EXPECT_EQ(resumed(home, job)["weights_sha256"], reference["weights_sha256"]);
}

TEST(Resume, TakesUpARunThatWasCancelled) {
  const Home home;
  const Words job = small_job(kSteps, {"learner.save_freq=10"});
  Process run = home.start(Words{"run"} + job);
  ASSERT_TRUE(
      eventually([&] { return fs::exists(home.run_dir(kSmallId) / "checkpoints/step-10"); }));
  run.signal(SIGINT);
  ASSERT_EQ(run.wait().code, 130);
  resumed(home, job);
}

TEST(Resume, AFolderThatIsNoRunIsRefused) {
  const Home home;
  const Finished done =
      home.run(Words{"run"} + small_job(kSteps) + Words{"--resume", home.path().string()});
  EXPECT_EQ(done.code, 1);
  EXPECT_NE(done.err.find(home.path().string()), std::string::npos) << done.err;
  EXPECT_NE(done.err.find("help:"), std::string::npos) << done.err;
  home.expect_nothing_left();
}

}  // namespace
}  // namespace tandem::e2e
