// `tandem run`: the files that a run leaves, the promises of its figures, and its ends.
#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

#include "runtime/base/digest.h"
#include "runtime/base/file.h"
#include "tests/actors/runs/event_file_reader.h"
#include "tests/e2e/cluster_driver.h"

namespace tandem::e2e {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int kRunSteps = 20;

// The lines of metrics.jsonl: those of steps, and the records of evaluations.
struct Metrics {
  std::vector<json> steps, evaluations;
};
Metrics metrics_of(const fs::path& run) {
  Metrics metrics;
  for (const json& line : lines_of(run / "metrics.jsonl"))
    (line.contains("eval") ? metrics.evaluations : metrics.steps).push_back(line);
  return metrics;
}

// The parameters' bytes: after the header of a safetensors file.
std::string parameters_sha256(const fs::path& checkpoint) {
  const std::string file = read_file(checkpoint / "model.safetensors").value();
  std::uint64_t header = 0;
  std::memcpy(&header, file.data(), sizeof header);
  return sha256_hex(std::as_bytes(std::span(file)).subspan(sizeof header + header));
}

TEST(Run, LeavesEverythingThatTheContractNames) {
  const Home home;
  const json result = home.train(kSmallId, small_job(kRunSteps));
  const fs::path run = home.run_dir(kSmallId);

  EXPECT_EQ(result["state"], "Succeeded");
  EXPECT_EQ(result["reason"], "Completed");
  EXPECT_EQ(result["message"], "all steps are trained");
  EXPECT_EQ(result["steps"], kRunSteps);
  EXPECT_EQ(result["policy_version"], kRunSteps);
  for (const char* kind : {"before", "after_warm_start", "final"}) {
    EXPECT_TRUE(result["eval"][kind].is_number()) << kind;
    EXPECT_GT(result["eval"]["counts"][kind]["scored"], 0) << kind;
    EXPECT_EQ(result["eval"]["counts"][kind]["failed"], 0) << kind;
  }
  EXPECT_EQ(result["eval"]["failed"], 0);
  EXPECT_EQ(result["staleness"]["bound"], 2);
  EXPECT_TRUE(result["staleness"]["mean"].is_number());
  EXPECT_EQ(result["ledger"]["trained"], kRunSteps * kGroupsPerStep);
  EXPECT_GE(result["tokens"]["generated"], result["tokens"]["trained"]);
  EXPECT_GT(result["tokens"]["trained"], 0);
  EXPECT_EQ(result["logprob_diff"]["max_at_staleness_0"], 0.0);
  EXPECT_GT(result["logprob_diff"]["tokens_at_staleness_0"], 0);
  EXPECT_EQ(result["weight_publish"]["count"], kRunSteps + 2) << "initial, warm-started, each step";
  EXPECT_GT(result["weight_publish"]["bytes_mean"], 0);
  for (const char* figure : {"trainer_idle_fraction", "rollout_idle_fraction"}) {
    EXPECT_GE(result[figure], 0.0) << figure;
    EXPECT_LE(result[figure], 1.0) << figure;
  }
  EXPECT_GT(result["wall_seconds"], 0.0);
  EXPECT_EQ(result["weights_sha256"], parameters_sha256(run / "checkpoints/step-20"));
  expect_ledger_balances(run, result);

  const auto [steps, evaluations] = metrics_of(run);
  EXPECT_EQ(steps.size(), std::size_t{kRunSteps});
  EXPECT_EQ(steps.back()["step"], kRunSteps);
  ASSERT_EQ(evaluations.size(), 3U);
  EXPECT_EQ(evaluations.back()["eval"], "final");
  EXPECT_EQ(evaluations.back()["step"], kRunSteps);
  EXPECT_EQ(evaluations.back()["val/reward/mean"], result["eval"]["final"]);
  EXPECT_EQ(result["eval"]["records"].size(), 3U);
  EXPECT_EQ(runs::shown_of(run / "tensorboard"), runs::scalars_in(run / "metrics.jsonl"));
  bool of_training = false, of_evaluation = false;
  for (const json& sample : lines_of(run / "samples.jsonl")) {
    for (const char* field : {"prompt", "completion", "reward"})
      EXPECT_TRUE(sample.contains(field)) << sample;
    (sample.contains("eval") ? of_evaluation : of_training) = true;
    if (sample.contains("eval")) continue;
    for (const char* field : {"step", "advantage", "versions", "finish_reason", "answer"})
      EXPECT_TRUE(sample.contains(field)) << sample;
    EXPECT_TRUE(sample["step"] >= 1 && sample["step"] <= kRunSteps) << sample["step"];
  }
  EXPECT_TRUE(of_training && of_evaluation);
  for (const char* file : {"config.json", "tokenizer.json", "model.safetensors", "trainer"})
    EXPECT_TRUE(fs::exists(run / "checkpoints/step-20" / file)) << file;
  EXPECT_TRUE(fs::exists(run / "logs/rollout.0.3.log") ||
              fs::exists(run / "logs/rollout.0.1.log") || fs::exists(run / "logs/rollout.0.2.log"));
  EXPECT_FALSE(fs::exists(run / "payload")) << "only live groups need payloads";
  EXPECT_FALSE(fs::exists(home.path() / "controller.json")) << "it works beside `up`";
  std::string said_of_actors;
  for (const json& event : home.json({"events", "-j", kSmallId}))
    said_of_actors += event["subject"].get<std::string>() + "\n";
  EXPECT_NE(said_of_actors.find(std::string(kSmallId) + "/rollout/0"), std::string::npos)
      << "its controller's events stay: " << said_of_actors;

  const auto shown = home.steps_in_timeline(kSmallId);
  for (int step = 1; step <= kRunSteps; ++step)
    EXPECT_TRUE(shown.contains("step " + std::to_string(step))) << step;
  const Finished said = home.run({"generate", (run / "checkpoints/step-20").string(), "12+34="});
  EXPECT_EQ(said.code, 0) << said.text();
  EXPECT_FALSE(home.json({"samples", run.string()}).empty());
  const Finished completions = home.run(
      {"eval", (run / "checkpoints/step-20").string(), "configs/arithmetic.yaml", "-o", "jsonl"});
  ASSERT_EQ(completions.code, 0) << completions.err;
  std::istringstream lines(completions.out);
  std::int64_t said_count = 0;
  for (std::string line; std::getline(lines, line); ++said_count)
    for (const char* field : {"prompt", "completion", "answer", "reward", "finish_reason"})
      EXPECT_TRUE(parse_json(line).contains(field)) << line;
  EXPECT_EQ(said_count, result["eval"]["counts"]["final"]["scored"]);
  EXPECT_EQ(
      home.run({"eval", (run / "checkpoints/step-20").string(), "configs/arithmetic.yaml"}).code,
      0);
}

TEST(Run, StrictlyOnPolicyEveryTokenIsAtStalenessZero) {
  const Home home;
  const json result = home.train(kSmallId, small_job(kRunSteps, {"async.max_staleness=0"}));
  EXPECT_EQ(result["staleness"]["max"], 0);
  EXPECT_EQ(result["logprob_diff"]["max_at_staleness_0"], 0.0);
  EXPECT_GT(result["logprob_diff"]["tokens_at_staleness_0"], 0);
  expect_ledger_balances(home.run_dir(kSmallId), result);
}

TEST(Run, WithoutALearningRateTheWeightsStayBitForBit) {
  const Home home;
  const json result =
      home.train(kSmallId, small_job(kRunSteps, {"learner.optimizer.lr=0", "learner.save_freq=0"}));
  const fs::path checkpoints = home.run_dir(kSmallId) / "checkpoints";
  EXPECT_EQ(read_file(checkpoints / "step-0/model.safetensors").value(),
            read_file(checkpoints / "step-20/model.safetensors").value());
  EXPECT_EQ(result["weights_sha256"], parameters_sha256(checkpoints / "step-0"));
  EXPECT_GT(metrics_of(home.run_dir(kSmallId)).steps.front()["actor/grad_norm"], 0.0);
}

// Once the exchange has ended, result.json alone has the figures; and no terminal limits the width.
TEST(Run, TheLastLinesAndTheSummaryOffATerminalSayAll) {
  const Home home;
  const Finished done = home.run(Words{"run"} + small_job(3));
  ASSERT_EQ(done.code, 0) << done.text();
  const json result = home.result_of(kSmallId);
  std::array<char, 64> reward{};
  std::snprintf(reward.data(), reward.size(), " reward=%.3f ", result["reward_mean"].get<double>());
  std::istringstream lines(done.err);
  bool succeeded = false;
  for (std::string line; std::getline(lines, line);) {
    const bool last = line.find("state=Succeeded") != line.npos;
    if (!last && line.find("state=Stopping") == line.npos) continue;
    succeeded = succeeded || last;
    EXPECT_NE(line.find("step=3/3"), line.npos) << line;
    EXPECT_NE(line.find(reward.data()), line.npos) << line;
  }
  EXPECT_TRUE(succeeded) << done.err;
  EXPECT_NE(done.out.find(result["weights_sha256"]), done.out.npos) << done.out;
  EXPECT_EQ(done.out.find("…"), done.out.npos) << done.out;
}

TEST(Run, ADryRunShowsAndStartsNothing) {
  const Home home;
  const Finished done = home.run(Words{"run"} + small_job(kRunSteps) + Words{"--dry-run"});
  EXPECT_EQ(done.code, 0);
  EXPECT_NE(done.out.find("total_training_steps: 20"), std::string::npos) << done.out;
  EXPECT_NE(done.out.find("# placement"), std::string::npos) << done.out;
  for (const char* row : {"# memory of each rank", "gradients", "KV pages", "reserved"})
    EXPECT_NE(done.out.find(row), std::string::npos) << row << "\n" << done.out;
  EXPECT_FALSE(fs::exists(home.path() / "runs"));
  home.expect_nothing_left();
}

TEST(Run, AJobThatItsMemoryNeverHoldsIsRefused) {
  const Home home;
  for (const Words& how : {Words{"--dry-run"}, Words{}}) {
    const Finished done =
        home.run(Words{"run"} + small_job(kRunSteps) + Words{"--memory", "128MiB"} + how);
    EXPECT_EQ(done.code, 2) << done.text();
    EXPECT_NE(done.err.find("memory of each rank:"), std::string::npos) << done.text();
    EXPECT_NE(done.err.find("a node that offers "), std::string::npos) << done.text();
  }
  EXPECT_FALSE(fs::exists(home.run_dir(kSmallId)));
  home.expect_nothing_left();
}

TEST(Run, TheFirstInterruptCancelsCleanly) {
  const Home home;
  Process run = home.start(Words{"run"} + small_job(kForever));
  ASSERT_TRUE(run.said("state=Running"));
  run.signal(SIGINT);
  const Finished done = run.wait();
  EXPECT_EQ(done.code, 130) << done.text();
  home.expect_nothing_left();
  const json result = home.result_of(kSmallId);
  EXPECT_EQ(result["state"], "Cancelled");
  expect_ledger_balances(home.run_dir(kSmallId), result);
}

// A rank that is stopped cannot end by itself, so the clean end takes its grace; the second
// interrupt does not wait for that.
TEST(Run, TheSecondInterruptEndsItAtOnce) {
  const Home home;
  Process run = home.start(Words{"run"} + small_job(kForever));
  ASSERT_TRUE(run.said("state=Running"));
  for (const pid_t pid : home.processes())
    if (pid != run.pid()) kill(pid, SIGSTOP);
  run.signal(SIGINT);
  ASSERT_TRUE(run.said("once more"));
  run.signal(SIGINT);
  EXPECT_EQ(run.wait().code, 130);
  home.expect_nothing_left();
}

TEST(Run, TwoRunsSideBySideDoNotMeet) {
  const Home home;
  Process first = home.start(Words{"run"} + small_job(kRunSteps));
  Process second = home.start(Words{"run"} + small_job(kRunSteps));
  EXPECT_EQ(first.wait().code, 0) << first.err();
  EXPECT_EQ(second.wait().code, 0) << second.err();
  home.expect_nothing_left();
  for (const char* job : {"arithmetic-grpo-1", "arithmetic-grpo-2"})
    expect_ledger_balances(home.run_dir(job), home.result_of(job));
}

}  // namespace
}  // namespace tandem::e2e
