// A run whose process is killed leaves no orphan, and --resume takes it up from its last
// checkpoint.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <fstream>
#include <iterator>

#include "runtime/base/file.h"
#include "runtime/sqlite/sqlite.h"
#include "tests/actors/runs/event_file_reader.h"
#include "tests/e2e/cluster_driver.h"

namespace tandem::e2e {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int kResumedSteps = 60;
constexpr int kGroupSize = 8;

Words resume(const Home& home, const Words& job) {
  return Words{"run"} + job + Words{"--resume", home.run_dir(kSmallId).string()};
}

// One line per step, in order, whichever process died; the result's figures of all steps are the
// sums of the lines.
void expect_a_line_per_step(const Home& home, const json& result) {
  std::ifstream metrics(home.run_dir(kSmallId) / "metrics.jsonl");
  std::int64_t steps = 0, staleness_max = 0;
  double tokens = 0;
  for (std::string text; std::getline(metrics, text);) {
    const json line = parse_json(text);
    if (line.contains("eval")) continue;  // an evaluation's record
    EXPECT_EQ(line["step"], ++steps);
    staleness_max = std::max<std::int64_t>(staleness_max, line["tandem/staleness/max"]);
    tokens += line["response_length/mean"].get<double>() * kGroupsPerStep * kGroupSize;
  }
  EXPECT_EQ(steps, kResumedSteps);
  const fs::path dir = home.run_dir(kSmallId);
  EXPECT_EQ(runs::shown_of(dir / "tensorboard"), runs::scalars_in(dir / "metrics.jsonl"));
  EXPECT_EQ(result["staleness"]["max"], staleness_max);
  EXPECT_EQ(result["tokens"]["trained"], std::llround(tokens));
  EXPECT_GE(result["tokens"]["generated"], result["tokens"]["trained"]);
  EXPECT_GE(result["weight_publish"]["count"], kResumedSteps);
}

json resumed(const Home& home, const Words& job) {
  const Finished again = home.run(resume(home, job));
  EXPECT_EQ(again.code, 0) << again.text();
  home.expect_nothing_left();  // nor the shared memory of the killed process
  const json result = home.result_of(kSmallId);
  EXPECT_EQ(result["state"], "Succeeded");
  EXPECT_EQ(result["steps"], kResumedSteps);
  EXPECT_EQ(result["ledger"]["trained"], kResumedSteps * kGroupsPerStep);
  expect_ledger_balances(home.run_dir(kSmallId), result);
  expect_a_line_per_step(home, result);
  return result;
}

TEST(Resume, TakesUpARunThatWasKilled) {
  const Home home;
  const Words job = small_job(kResumedSteps, {"learner.save_freq=10"});
  run_and_kill(home, job);
  const json result = resumed(home, job);
  EXPECT_EQ(result["ledger"]["discarded"], json::object());
  EXPECT_TRUE(result["eval"]["before"].is_number()) << "of the first process";
  EXPECT_TRUE(result["eval"]["final"].is_number());
  EXPECT_EQ(
      journal_value(home.run_dir(kSmallId), "SELECT count(*) FROM journal WHERE kind = 'resumed'"),
      1);
}

TEST(Resume, TakesUpARunThatWasCancelled) {
  const Home home;
  const Words job = small_job(kResumedSteps, {"learner.save_freq=10"});
  Process run = home.start(Words{"run"} + job + held(home, 25));
  ASSERT_TRUE(
      eventually([&] { return fs::exists(home.run_dir(kSmallId) / "checkpoints/step-10"); }));
  run.signal(SIGINT);
  ASSERT_EQ(run.wait().code, 130);
  resumed(home, job);
}

// A run that is cancelled between two checkpoints loses no step, and the hint says the way on.
TEST(Resume, CtrlCSavesWhatIsTrainedAndSaysHowToGoOn) {
  const Home home;
  const Words job = small_job(kResumedSteps, {"learner.save_freq=0"});
  Process run = home.start(Words{"run"} + job + held(home, 25));
  const fs::path dir = home.run_dir(kSmallId);
  ASSERT_TRUE(eventually([&] {
    std::ifstream lines(dir / "metrics.jsonl");
    int steps = 0;
    for (std::string line; std::getline(lines, line);)
      steps += line.find("\"eval\"") == std::string::npos ? 1 : 0;
    return steps >= 25;
  }));
  run.signal(SIGINT);
  const Finished cancelled = run.wait();
  ASSERT_EQ(cancelled.code, 130) << cancelled.text();
  const std::string hint = "resume with: tandem run --resume " + fs::canonical(dir).string();
  EXPECT_NE(cancelled.err.find(hint), std::string::npos) << cancelled.text();
  const json stopped = home.result_of(kSmallId);
  EXPECT_TRUE(fs::exists(dir / "checkpoints" / ("step-" + stopped["steps"].dump()))) << stopped;
  let_go(home);
  const json result = resumed(home, {});
  EXPECT_EQ(result["ledger"]["retrained"], 0) << "nothing was lost";
}

// The run is extended by the number of steps alone: its own job file says the rest, and then that
// number too.
TEST(Resume, AFinishedRunIsExtendedAndNotShortened) {
  const Home home;
  home.train(kSmallId, small_job(10));
  const fs::path dir = home.run_dir(kSmallId);
  const std::string former = *read_file(dir / "job.yaml");
  const Finished shorter =
      home.run({"run", "--resume", dir.string(), "--set", "learner.total_training_steps=4"});
  EXPECT_EQ(shorter.code, 64) << shorter.text();
  EXPECT_NE(shorter.err.find("step 10"), std::string::npos) << shorter.text();
  EXPECT_NE(shorter.err.find("step 4"), std::string::npos) << shorter.text();
  EXPECT_EQ(*read_file(dir / "job.yaml"), former);

  const Finished longer =
      home.run({"run", "--resume", kSmallId, "--set", "learner.total_training_steps=20"});
  EXPECT_EQ(longer.code, 0) << longer.text();
  const json result = home.result_of(kSmallId);
  EXPECT_EQ(result["steps"], 20);
  expect_ledger_balances(dir, result);
  const std::string finals =
      "SELECT count(*) FROM journal WHERE kind = 'evaluated' AND detail "
      "LIKE 'final=%' AND version = ";
  EXPECT_EQ(journal_value(dir, finals + "10"), 1);
  EXPECT_EQ(journal_value(dir, finals + "20"), 1) << "evaluated anew at the new end";
  EXPECT_NE(read_file(dir / "job.yaml")->find("total_training_steps: 20"), std::string::npos);
  EXPECT_EQ(*read_file(dir / "job.yaml.1"), former);
  home.expect_nothing_left();
}

TEST(Resume, AClusterTakesUpARunOfItsOwn) {
  const Home home, other;
  home.train(kSmallId, small_job(6));
  home.up();
  other.train(kSmallId, small_job(3));
  const Finished foreign = home.run({"submit", "--resume", other.run_dir(kSmallId).string()});
  EXPECT_EQ(foreign.code, 64) << foreign.text();
  EXPECT_NE(foreign.err.find("not one of this controller's"), std::string::npos) << foreign.text();
  const Words shorter = sets({"learner.total_training_steps=2"});
  EXPECT_EQ(home.run(Words{"submit", "--resume", kSmallId} + shorter).code, 64);
  const Words longer = sets({"learner.total_training_steps=12"});
  const Finished done = home.run(Words{"submit", "--resume", kSmallId, "--wait"} + longer);
  EXPECT_NE(done.err.find("Succeeded in "), std::string::npos) << "the summary of `run`";
  EXPECT_EQ(done.code, 0) << done.text();
  EXPECT_EQ(done.out, std::string(kSmallId) + "\n");
  EXPECT_EQ(home.result_of(kSmallId)["steps"], 12);
  home.down();
  home.expect_nothing_left();
}

TEST(Resume, IsRefusedWhereTheJobSaysSoOrAnotherJobIsMeant) {
  const Home home;
  const Words job = small_job(kResumedSteps, {"learner.save_freq=10"});
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
  const Words job = small_job(kResumedSteps, {"learner.save_freq=10"});
  Process run = home.start(Words{"run"} + job + held(home, 20));
  const fs::path dir = home.run_dir(kSmallId);
  ASSERT_TRUE(eventually([&] { return fs::exists(dir / "checkpoints/step-0"); })) << run.err();
  expect_in_use(home.run(resume(home, job)), run.pid());
  let_go(home);
  EXPECT_EQ(run.wait().code, 0) << run.err();
  home.expect_nothing_left();
  const json result = home.result_of(kSmallId);
  EXPECT_EQ(result["ledger"]["trained"], kResumedSteps * kGroupsPerStep);
  expect_ledger_balances(dir, result);
  expect_a_line_per_step(home, result);
  EXPECT_EQ(journal_value(dir, "SELECT count(*) FROM journal WHERE kind = 'resumed'"), 0);
  const auto logs = std::distance(fs::directory_iterator(dir / "logs"), fs::directory_iterator());
  EXPECT_EQ(logs, 3) << "one incarnation of each actor";
}

TEST(Resume, OfTwoAtOnceOneIsRefused) {
  const Home home;
  const Words job = small_job(kResumedSteps, {"learner.save_freq=10"});
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
  EXPECT_EQ(result["ledger"]["trained"], kResumedSteps * kGroupsPerStep);
  expect_ledger_balances(home.run_dir(kSmallId), result);
  expect_a_line_per_step(home, result);
}

// Every file that grows is small: what is there goes on to be read, and the run goes on from it.
TEST(Resume, TakesUpARunWhoseFilesHaveReachedTheirLimits) {
  Home home;
  constexpr int kSteps = 400;
  home.start_by({"env", "TANDEM_LOG_MAX_BYTES=4096", "TANDEM_LOG_MAX_FILES=2"});
  const Words job =
      small_job(kSteps, {"learner.save_freq=10", "record=replay", "retention.samples_bytes=65536",
                         "retention.metrics_bytes=65536", "retention.journal_bytes=65536"});
  run_and_kill(home, job);
  const Finished again = home.run(resume(home, job));
  ASSERT_EQ(again.code, 0) << again.text();
  const json result = home.result_of(kSmallId);
  EXPECT_EQ(result["steps"], kSteps);
  EXPECT_EQ(result["ledger"]["trained"], kSteps * kGroupsPerStep);
  const fs::path dir = home.run_dir(kSmallId);
  for (const char* const file : {"samples.jsonl", "metrics.jsonl"})
    EXPECT_LE(fs::file_size(dir / file), 65536U) << file;
  const auto rows = [&](const std::string& kind) {
    return journal_value(dir, "SELECT count(*) FROM journal WHERE kind = '" + kind + "'");
  };
  EXPECT_EQ(rows("samples_full"), 1);
  EXPECT_EQ(rows("metrics_thinned"), 1);
  EXPECT_GT(rows("archived"), 0);
  EXPECT_LT(rows("archived"), 150) << "each has many rows";
  EXPECT_LT(rows("committed"), kSteps);

  std::string log;
  for (const auto& file : fs::directory_iterator(dir / "logs"))
    if (file.path().filename().string().starts_with("rollout.0") && file.path().extension() == ".1")
      log = read_file(file.path()).value() +
            read_file(fs::path(file.path()).replace_extension()).value();
  EXPECT_NE(log, "") << "the rollout's log was rotated";
  EXPECT_EQ(home.run({"logs", std::string(kSmallId) + "/rollout/0"}).out, log);
  const json shown = home.json({"get", "runs", kSmallId});
  for (const char* const file : {"samples.jsonl", "metrics.jsonl"})
    EXPECT_GT(shown["disk"]["dropped"][file]["lines"], 0) << shown["disk"];
  EXPECT_GT(shown["disk"]["dropped"]["journal.sqlite"]["archived"], 0);
  EXPECT_NE(home.run({"describe", std::string("run/") + kSmallId}).out.find("dropped:"),
            std::string::npos);
  EXPECT_EQ(home.json({"samples", kSmallId}).back()["step"], kSteps);
  EXPECT_NE(home.run({"metrics", kSmallId, "-o", "csv"}).out.find("\n400,"), std::string::npos);
  // The archive has all that a replay needs.
  const json replayed = home.json({"replay", kSmallId});
  EXPECT_EQ(replayed["weights_sha256"], result["weights_sha256"]);
}

// The oldest events of its journal have gone, and nothing that a resume needs.
TEST(Resume, TakesUpARunWhoseJournalIsSummedUp) {
  const Home home;
  constexpr int kSteps = 1000;
  const Words job = small_job(
      kSteps, {"async.schedule=fixed_lag", "learner.save_freq=20", "data.val_files=[]",
               "record=replay", "retention.journal_bytes=262144", "retention.archive_bytes=65536"});
  run_and_kill(home, job, 900);
  const fs::path dir = home.run_dir(kSmallId);
  const auto archived_bytes = [&] {
    return journal_value(dir, "SELECT sum(length(body)) FROM events WHERE kind = 'archived'");
  };
  EXPECT_LT(archived_bytes(), 2 * 65536);
  const std::int64_t summed_to = journal_value(dir, "SELECT seq FROM histories");
  EXPECT_GT(summed_to, 0);
  const Finished again = home.run(resume(home, job));
  ASSERT_EQ(again.code, 0) << again.text();
  const json result = home.result_of(kSmallId);
  EXPECT_EQ(result["steps"], kSteps);
  EXPECT_EQ(result["ledger"]["trained"], kSteps * kGroupsPerStep);
  EXPECT_LT(archived_bytes(), 2 * 65536);
  const json dropped = home.json({"get", "runs", kSmallId})["disk"]["dropped"]["journal.sqlite"];
  EXPECT_GT(dropped["summed_to"], summed_to) << dropped;
  const Finished from_the_start = home.run({"replay", kSmallId});
  EXPECT_EQ(from_the_start.code, 3) << from_the_start.text();
  EXPECT_NE(from_the_start.err.find("retention.archive_bytes"), std::string::npos)
      << from_the_start.text();
  const json replayed = home.json({"replay", kSmallId, "--from-step", "980"});
  EXPECT_EQ(replayed["weights_sha256"], result["weights_sha256"]);
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
  const Words job = small_job(kResumedSteps, {"learner.save_freq=10"});
  run_and_kill(home, job);
  const Finished other = home.run(resume(home, job + sets({"seed=18"})));
  EXPECT_EQ(other.code, 1) << other.text();
  EXPECT_NE(other.err.find("another seed"), std::string::npos) << other.text();
  EXPECT_FALSE(fs::exists(home.run_dir(kSmallId) / "result.json")) << "it knows nothing of the run";
  resumed(home, job);
  const std::string first = "SELECT count(*) FROM journal WHERE kind = 'committed' AND step = 0";
  EXPECT_EQ(journal_value(home.run_dir(kSmallId), first), 1) << "it went on from its checkpoint";
  const Finished again = home.run(resume(home, job + sets({"seed=18"})));
  EXPECT_EQ(again.code, 1) << again.text();
  EXPECT_EQ(again.out, "") << "the summary would be the earlier incarnation's";
}

TEST(Resume, ARunOfAnotherVersionIsRefusedBeforeAnythingBegins) {
  const Home home;
  ASSERT_TRUE(fs::create_directories(home.run_dir(kSmallId)));
  ASSERT_TRUE(sqlite::Sqlite::open((home.run_dir(kSmallId) / "journal.sqlite").string(),
                                   "CREATE TABLE journal(seq INTEGER, kind TEXT)"));
  const Finished old = home.run(resume(home, small_job(kResumedSteps)));
  EXPECT_EQ(old.code, 64) << old.text();
  EXPECT_NE(old.err.find("schema 1"), std::string::npos) << old.text();
  EXPECT_NE(old.err.find("begin a new run from its checkpoint"), std::string::npos) << old.text();
  EXPECT_FALSE(fs::exists(home.run_dir(kSmallId) / "logs")) << "no rank was started";
  home.up();
  EXPECT_EQ(home.run(Words{"submit"} + small_job(kResumedSteps) + Words{"--resume", kSmallId}).code,
            64);
  home.down();
  home.expect_nothing_left();
}

TEST(Resume, AFolderThatIsNoRunIsRefused) {
  const Home home;
  const Finished done =
      home.run(Words{"run"} + small_job(kResumedSteps) + Words{"--resume", home.path().string()});
  EXPECT_EQ(done.code, 1);
  EXPECT_NE(done.err.find(home.path().string()), std::string::npos) << done.err;
  EXPECT_NE(done.err.find("help:"), std::string::npos) << done.err;
  home.expect_nothing_left();
}

}  // namespace
}  // namespace tandem::e2e
