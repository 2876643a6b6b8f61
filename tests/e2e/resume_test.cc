// A run whose process is killed leaves no orphan, and --resume takes it up from its last
// checkpoint.
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <fstream>

#include "runtime/base/file.h"
#include "tests/e2e/cluster_driver.h"

namespace tandem::e2e {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int kSteps = 60;
constexpr int kGroupSize = 8;

Words resume(const Home& home, const Words& job) {
  return Words{"run"} + job + Words{"--resume", home.run_dir(kSmallId).string()};
}

// A line per step, in order, whoever died; what the result says of all steps is what they add up
// to.
void expect_a_line_per_step(const Home& home, const json& result) {
  std::ifstream metrics(home.run_dir(kSmallId) / "metrics.jsonl");
  std::int64_t steps = 0, staleness_max = 0;
  double tokens = 0;
  for (std::string text; std::getline(metrics, text);) {
    const json line = parse_json(text);
    EXPECT_EQ(line["step"], ++steps);
    staleness_max = std::max<std::int64_t>(staleness_max, line["tandem/staleness/max"]);
    tokens += line["response_length/mean"].get<double>() * kGroupsPerStep * kGroupSize;
  }
  EXPECT_EQ(steps, kSteps);
  EXPECT_EQ(result["staleness"]["max"], staleness_max);
  EXPECT_EQ(result["tokens"]["trained"], std::llround(tokens));
  EXPECT_GE(result["tokens"]["generated"], result["tokens"]["trained"]);
  EXPECT_GE(result["weight_publish"]["count"], kSteps);
}

json resumed(const Home& home, const Words& job) {
  const Finished again = home.run(resume(home, job));
  EXPECT_EQ(again.code, 0) << again.text();
  home.expect_nothing_left();  // nor the shared memory of the life that was killed
  const json result = home.result_of(kSmallId);
  EXPECT_EQ(result["state"], "Succeeded");
  EXPECT_EQ(result["steps"], kSteps);
  EXPECT_EQ(result["ledger"]["trained"], kSteps * kGroupsPerStep);
  expect_ledger_balances(home.run_dir(kSmallId), result);
  expect_a_line_per_step(home, result);
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

TEST(Resume, TakesUpARunThatWasCancelled) {
  const Home home;
  const Words job = small_job(kSteps, {"learner.save_freq=10"});
  Process run = home.start(Words{"run"} + job + held(home, 25));
  ASSERT_TRUE(
      eventually([&] { return fs::exists(home.run_dir(kSmallId) / "checkpoints/step-10"); }));
  run.signal(SIGINT);
  ASSERT_EQ(run.wait().code, 130);
  resumed(home, job);
}

TEST(Resume, IsRefusedWhereTheJobSaysSoOrAnotherJobIsMeant) {
  const Home home;
  const Words job = small_job(kSteps, {"learner.save_freq=10"});
  run_and_kill(home, job);
  const json result = resumed(home, job);
  const std::string metrics = *read_file(home.run_dir(kSmallId) / "metrics.jsonl");
  const Finished disabled = home.run(resume(home, job + sets({"learner.resume_mode=disable"})));
  EXPECT_EQ(disabled.code, 64) << disabled.text();
  EXPECT_NE(disabled.err.find("learner.resume_mode"), std::string::npos) << disabled.text();
  const Finished another = home.run(resume(home, job + sets({"data.train_batch_size=8"})));
  EXPECT_EQ(another.code, 1) << another.text();
  EXPECT_NE(another.err.find("groups trained before checkpoint"), std::string::npos)
      << another.text();
  EXPECT_EQ(home.result_of(kSmallId), result);
  EXPECT_EQ(*read_file(home.run_dir(kSmallId) / "metrics.jsonl"), metrics);
}

// The lock names its owner; nothing of the run is touched.
void expect_in_use(const Finished& refused, std::int64_t owner) {
  EXPECT_EQ(refused.code, 1) << refused.text();
  EXPECT_NE(refused.err.find("is in use by process " + std::to_string(owner)), std::string::npos)
      << refused.text();
  EXPECT_NE(refused.err.find("help:"), std::string::npos) << refused.text();
}

TEST(Resume, ARunThatIsAliveIsRefusedAndUnharmed) {
  const Home home;
  const Words job = small_job(kSteps, {"learner.save_freq=10"});
  Process run = home.start(Words{"run"} + job + held(home, 20));
  const fs::path dir = home.run_dir(kSmallId);
  ASSERT_TRUE(eventually([&] { return fs::exists(dir / "checkpoints/step-0"); })) << run.err();
  expect_in_use(home.run(resume(home, job)), run.pid());
  let_go(home);
  EXPECT_EQ(run.wait().code, 0) << run.err();
  home.expect_nothing_left();
  const json result = home.result_of(kSmallId);
  EXPECT_EQ(result["ledger"]["trained"], kSteps * kGroupsPerStep);
  expect_ledger_balances(dir, result);
  expect_a_line_per_step(home, result);
  EXPECT_EQ(journal_value(dir, "SELECT count(*) FROM journal WHERE kind = 'resumed'"), 0);
  const auto logs = std::distance(fs::directory_iterator(dir / "logs"), fs::directory_iterator());
  EXPECT_EQ(logs, 3) << "one life of each actor";
}

TEST(Resume, OfTwoAtOnceOneIsRefused) {
  const Home home;
  const Words job = small_job(kSteps, {"learner.save_freq=10"});
  run_and_kill(home, job);
  const Words again = resume(home, job + held(home, 20));
  Process two[] = {home.start(again), home.start(again)};
  ASSERT_TRUE(eventually([&] { return two[0].ended() || two[1].ended(); }));
  const int winner = two[0].ended() ? 1 : 0;
  const pid_t owner = two[winner].pid();
  expect_in_use(two[1 - winner].wait(), owner);
  let_go(home);
  const Finished done = two[winner].wait();
  EXPECT_EQ(done.code, 0) << done.text();
  home.expect_nothing_left();
  const json result = home.result_of(kSmallId);
  EXPECT_EQ(result["ledger"]["trained"], kSteps * kGroupsPerStep);
  expect_ledger_balances(home.run_dir(kSmallId), result);
  expect_a_line_per_step(home, result);
}

TEST(Resume, ARunOfAClusterIsRefusedUntilItIsOver) {
  const Home home;
  home.up();
  const Words job = small_job(100'000, {"learner.save_freq=10"});
  ASSERT_EQ(home.run(Words{"submit"} + job).code, 0);
  const fs::path checkpoints = home.run_dir(kSmallId) / "checkpoints";
  ASSERT_TRUE(eventually([&] { return fs::exists(checkpoints / "step-0"); }));
  const auto controller = parse_json(*read_file(home.path() / "controller.json"));
  expect_in_use(home.run(resume(home, job)), controller["pid"]);
  EXPECT_TRUE(eventually([&] {
    return home.json({"get", "jobs", kSmallId})["state"] == "Running";
  }));
  EXPECT_EQ(home.run({"cancel", kSmallId}).code, 0);
  Process again = home.start(resume(home, job));  // beside the cluster, which is up all the while
  EXPECT_TRUE(again.said("TANDEM_ADDRESS="));
  again.signal(SIGINT);
  EXPECT_EQ(again.wait().code, 130) << again.err();
  home.down();
  home.expect_nothing_left();
}

TEST(Resume, ACheckpointOfAnotherJobIsRefusedAndKept) {
  const Home home;
  const Words job = small_job(kSteps, {"learner.save_freq=10"});
  run_and_kill(home, job);
  const Finished other = home.run(resume(home, job + sets({"seed=18"})));
  EXPECT_EQ(other.code, 1) << other.text();
  EXPECT_NE(other.err.find("another seed"), std::string::npos) << other.text();
  EXPECT_FALSE(fs::exists(home.run_dir(kSmallId) / "result.json")) << "it knows nothing of the run";
  resumed(home, job);
  const std::string first = "SELECT count(*) FROM journal WHERE kind = 'committed' AND step = 0";
  EXPECT_EQ(journal_value(home.run_dir(kSmallId), first), 1) << "it went on from its checkpoint";
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
