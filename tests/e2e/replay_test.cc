// `tandem replay`: recorded runs of several kinds are trained again to the same weights, and what
// was changed since is told at its step.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <fstream>

#include "actors/runs/batch_log.h"
#include "actors/runs/packed.h"
#include "actors/runs/run_journal.h"
#include "runtime/base/file.h"
#include "runtime/sqlite/sqlite.h"
#include "runtime/wire/codec.h"
#include "tests/e2e/cluster_driver.h"

namespace tandem::e2e {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int kReplaySteps = 30;

Words recorded_job(const Words& settings = {}) {
  return small_job(kReplaySteps, Words{"record=replay", "data.val_files=[]"} + settings);
}

// The whole run gives the weights that its result names.
json expect_equal(const Home& home, const Words& options = {}) {
  const json replayed = home.json(Words{"replay", kSmallId} + options);
  EXPECT_EQ(replayed["difference"], json());
  EXPECT_EQ(replayed["equal"], true);
  EXPECT_EQ(replayed["notes"], json::array());
  if (options.empty()) {
    const json result = home.result_of(kSmallId);
    EXPECT_EQ(replayed["to_step"], result["steps"]);
    EXPECT_EQ(replayed["weights_sha256"], result["weights_sha256"]);
    EXPECT_EQ(replayed["expected_sha256"], result["weights_sha256"]);
  }
  return replayed;
}

// Adds 0.25 to the first score of a group that step `step` trained, in the run's journal.
void change_a_score(const fs::path& run_dir, int step) {
  const auto group = static_cast<std::uint64_t>(journal_value(
      run_dir, "SELECT min(group_id) FROM journal WHERE kind = 'trained' AND step = " +
                   std::to_string(step - 1)));
  auto database = sqlite::Sqlite::open((run_dir / "journal.sqlite").string(), "");
  ASSERT_TRUE(database);
  sqlite::Sqlite::Row changed;
  const auto look = [&](const sqlite::Sqlite::Row& row) {
    auto events = runs::RunJournal::events_in(row[1]);
    ASSERT_TRUE(events);
    bool found = false;
    std::string body;
    for (exchange::JournalEvent& event : *events) {
      auto* scored = std::get_if<exchange::GroupScored>(&event);
      if (scored && scored->group == GroupId{group}) {
        scored->rewards[0] += 0.25f;
        found = true;
      }
      const std::string bytes = wire::encode(event);
      for (int shift = 0; shift < 32; shift += 8)
        body += static_cast<char>(bytes.size() >> shift & 0xff);
      body += bytes;
    }
    if (found) changed = {sqlite::Sqlite::Blob{runs::packed(std::move(body))}, row[0]};
  };
  ASSERT_TRUE((*database)->query("SELECT seq, body FROM events ORDER BY seq", look));
  ASSERT_EQ(changed.size(), 2u) << "group " << group << " was never scored";
  ASSERT_TRUE((*database)->insert("UPDATE events SET body = ? WHERE seq = ?", {changed},
                                  sqlite::Durability::kKill));
}

// The figures of a dumped step against those that the run wrote of it, and against each other.
void expect_dump_fits(const json& dump, const json& line, int n) {
  EXPECT_EQ(dump["step"], line["step"]);
  EXPECT_EQ(dump["groups"].size(), kGroupsPerStep);
  double loss = 0, reward = 0, most = 0;
  std::int64_t staleness = 0;
  for (const json& group : dump["groups"]) {
    EXPECT_EQ(group["completions"].size(), n);
    for (const json& one : group["completions"]) {
      const std::size_t tokens = one["tokens"].size();
      EXPECT_EQ(one["rollout_logprobs"].size(), tokens);
      ASSERT_EQ(one["updates"].size(), 1u);
      const json& update = one["updates"][0];
      for (const char* list : {"logprobs", "losses", "advantages", "entropies"})
        EXPECT_EQ(update[list].size(), tokens) << list;
      EXPECT_EQ(update["advantages"][0], one["advantage"]);
      for (const json& token : update["losses"]) loss += token.get<double>();
      reward += one["reward"].get<double>();
      most = std::max(most, one["reward"].get<double>());
      staleness = std::max(staleness, one["staleness"].get<std::int64_t>());
    }
  }
  EXPECT_NEAR(loss, line["actor/loss"].get<double>(), 1e-6);
  EXPECT_DOUBLE_EQ(dump["loss"], line["actor/loss"]);
  EXPECT_DOUBLE_EQ(dump["grad_norm"], line["actor/grad_norm"]);
  EXPECT_NEAR(reward / (kGroupsPerStep * n), line["critic/rewards/mean"].get<double>(), 1e-9);
  EXPECT_EQ(most, line["critic/rewards/max"]);
  EXPECT_EQ(staleness, line["tandem/staleness/max"]);
}

class ReplayedRun : public testing::Test {
 protected:
  // One asynchronous run for all tests of this suite, which leave it as it was.
  static void SetUpTestSuite() {
    home_ = new Home;
    result_ = new json(home_->train(
        kSmallId, recorded_job({"learner.save_freq=10", "learner.max_ckpt_to_keep=5"})));
  }
  static void TearDownTestSuite() {
    delete result_;
    delete home_;
  }
  static fs::path dir() { return home_->run_dir(kSmallId); }
  static Home* home_;
  static json* result_;
};
Home* ReplayedRun::home_ = nullptr;
json* ReplayedRun::result_ = nullptr;

TEST_F(ReplayedRun, GivesTheSameWeights) {
  EXPECT_EQ((*result_)["staleness"]["bound"], 2);
  const json replayed = expect_equal(*home_);
  EXPECT_EQ(replayed["from_step"], 0);
  EXPECT_EQ(replayed["recorded_steps"], kReplaySteps);
  EXPECT_EQ(replayed["recorded_bytes"], (*result_)["recorded_bytes"]);
  EXPECT_EQ(lines_of(dir() / "metrics.jsonl").back()["tandem/recorded_bytes"],
            (*result_)["recorded_bytes"]);
  const Finished shown = home_->run({"replay", dir().string()});
  EXPECT_EQ(shown.code, 0) << shown.text();
  EXPECT_NE(shown.out.find("equal to the run's after each step"), std::string::npos) << shown.out;
}

TEST_F(ReplayedRun, EndsAndBeginsWhereItIsTold) {
  const json part = expect_equal(*home_, {"--to-step", "10"});
  EXPECT_EQ(part["to_step"], 10);
  EXPECT_TRUE(part["expected_sha256"].is_string()) << "there was a checkpoint";
  EXPECT_EQ(part["expected_sha256"], part["weights_sha256"]);
  const json between = expect_equal(*home_, {"--to-step", "13"});
  EXPECT_TRUE(between["expected_sha256"].is_null());
  const json later = expect_equal(*home_, {"--from-step", "10"});
  EXPECT_EQ(later["from_step"], 10);
  EXPECT_EQ(later["weights_sha256"], (*result_)["weights_sha256"]);
  const Finished beyond = home_->run({"replay", kSmallId, "--to-step", "31"});
  EXPECT_EQ(beyond.code, 64);
  EXPECT_NE(beyond.err.find("trained 30 steps, not 31"), std::string::npos) << beyond.err;
  const Finished nowhere = home_->run({"replay", kSmallId, "--from-step", "7"});
  EXPECT_EQ(nowhere.code, 3) << nowhere.text();
}

TEST_F(ReplayedRun, DumpsAStep) {
  const fs::path file = home_->path() / "dump.json";
  const json replayed = expect_equal(*home_, {"--dump-step", "7", "--dump-file", file.string()});
  EXPECT_EQ(replayed["to_step"], 7);
  EXPECT_EQ(replayed["dump_file"], file.string());
  const json dump = json::parse(*read_file(file));
  expect_dump_fits(dump, lines_of(dir() / "metrics.jsonl")[6], 8);
  // The samples of the step are among its completions.
  for (const json& sample : lines_of(dir() / "samples.jsonl")) {
    if (sample["step"] != 7) continue;
    const auto& groups = dump["groups"];
    EXPECT_TRUE(std::ranges::any_of(groups, [&](const json& group) {
      return group["prompt"] == sample["prompt"] &&
             std::ranges::any_of(group["completions"], [&](const json& one) {
               return one["text"] == sample["completion"] && one["reward"] == sample["reward"];
             });
    })) << sample;
  }
}

TEST_F(ReplayedRun, AChangedScoreIsToldAtItsStep) {
  const fs::path other = home_->run_dir("changed-1");
  fs::copy(dir(), other, fs::copy_options::recursive);
  change_a_score(other, 12);
  const Finished told = home_->run({"replay", other.string()});
  EXPECT_EQ(told.code, 1) << told.text();
  EXPECT_NE(told.err.find("step 12 is the first that differs: the score of completion 0 of group"),
            std::string::npos)
      << told.text();
  const Finished before = home_->run({"replay", other.string(), "--to-step", "11"});
  EXPECT_EQ(before.code, 0) << before.text();
  fs::remove_all(other);
}

TEST_F(ReplayedRun, ADamagedRecordIsToldAtItsStep) {
  const fs::path other = home_->run_dir("damaged-1");
  fs::copy(dir(), other, fs::copy_options::recursive);
  const fs::path file = runs::batch_log_folder(other) / "batches-000001.log";
  std::string bytes = *read_file(file);
  bytes[bytes.size() - 10] ^= 4;
  std::ofstream(file, std::ios::binary) << bytes;
  const Finished told = home_->run({"replay", other.string()});
  EXPECT_EQ(told.code, 64) << told.text();
  EXPECT_NE(told.err.find("the recorded batch of step 30 is damaged"), std::string::npos)
      << told.text();
  fs::remove_all(other);
}

TEST_F(ReplayedRun, GivesTheSameWeightsByALesserInstructionSet) {
  const Finished narrow =
      home_->start_program({"env", "TANDEM_ISA=avx2", TANDEM_BINARY, "replay", dir().string()})
          .wait();
  EXPECT_EQ(narrow.code, 0) << narrow.text();
}

TEST(Replay, ARunWithoutARecordSaysWhichKeyMakesOne) {
  const Home home;
  home.train(kSmallId, small_job(3, {"data.val_files=[]"}));
  EXPECT_FALSE(fs::exists(home.run_dir(kSmallId) / "replay"));
  const Finished none = home.run({"replay", kSmallId});
  EXPECT_EQ(none.code, 3) << none.text();
  EXPECT_NE(none.err.find("record: replay"), std::string::npos) << none.text();
}

// Killed behind a checkpoint, and resumed with another learning rate: the steps behind the
// checkpoint were trained twice, and the second time counts.
TEST(Replay, ARunThatWasKilledAndResumedWithOtherSettings) {
  const Home home;
  const Words job = recorded_job({"learner.save_freq=10"});
  run_and_kill(home, job);
  const Finished again =
      home.run(Words{"run"} + job + sets({"learner.optimizer.lr=2e-4", "learner.ranks=2"}) +
               Words{"--resume", home.run_dir(kSmallId).string()});
  ASSERT_EQ(again.code, 0) << again.text();
  EXPECT_GE(
      journal_value(home.run_dir(kSmallId), "SELECT count(*) FROM journal WHERE kind = 'resumed'"),
      1);
  expect_equal(home);
}

// The key comes with the resume: what was trained before is not recorded.
TEST(Replay, ARunThatIsRecordedFromACheckpointOn) {
  const Home home;
  home.train(kSmallId, small_job(10, {"data.val_files=[]", "learner.max_ckpt_to_keep=3"}));
  const Finished more = home.run({"run", "--resume", kSmallId, "--set", "record=replay", "--set",
                                  "learner.total_training_steps=" + std::to_string(kReplaySteps)});
  ASSERT_EQ(more.code, 0) << more.text();
  const Finished from_the_start = home.run({"replay", kSmallId});
  EXPECT_EQ(from_the_start.code, 3);
  EXPECT_NE(from_the_start.err.find("batches are recorded from step 11 on"), std::string::npos)
      << from_the_start.text();
  const json replayed = expect_equal(home, {"--from-step", "10"});
  EXPECT_EQ(replayed["weights_sha256"], home.result_of(kSmallId)["weights_sha256"]);
}

// The limit is half of what a run records without one, so that about its second half stays.
// The schedule is fixed, so that both runs record the same batches.
TEST(Replay, ARunWhoseOldestBatchesHaveGone) {
  constexpr std::int64_t kSaveFreq = 20;
  const Words job = small_job(
      200, {"record=replay", "data.val_files=[]", "learner.save_freq=" + std::to_string(kSaveFreq),
            "learner.max_ckpt_to_keep=5", "async.schedule=fixed_lag"});
  const Home whole;
  const auto bytes = whole.train(kSmallId, job)["recorded_bytes"].get<std::int64_t>();
  const Home home;
  home.train(kSmallId, job + sets({"retention.replay_bytes=" +
                                   std::to_string(std::max<std::int64_t>(bytes / 2, 65536))}));
  EXPECT_LT(home.result_of(kSmallId)["recorded_bytes"], bytes);
  const auto recorded = runs::BatchLogReader::open(home.run_dir(kSmallId));
  ASSERT_TRUE(recorded && recorded->first());
  const std::int64_t first = recorded->first()->value;
  ASSERT_GT(first, 0) << "all batches are still there";
  // The checkpoint of step N comes before the batch N, as batches count from 0.
  const std::string begin = std::to_string((first + kSaveFreq - 1) / kSaveFreq * kSaveFreq);
  const Finished from_the_start = home.run({"replay", kSmallId});
  EXPECT_EQ(from_the_start.code, 3);
  const std::string wanted =
      "--from-step " + begin + " begins with the first checkpoint from there on";
  EXPECT_NE(from_the_start.err.find(wanted), std::string::npos) << from_the_start.text();
  const json replayed = expect_equal(home, {"--from-step", begin});
  EXPECT_EQ(replayed["weights_sha256"], home.result_of(kSmallId)["weights_sha256"]);
}

// The controller dies, and later the learner: the batches since its checkpoint are recorded twice.
TEST(Replay, ASubmittedRunWhoseControllerAndLearnerDied) {
  const Home home;
  home.up();
  ASSERT_EQ(home.run(Words{"submit"} + recorded_job({"learner.save_freq=10"}) +
                     held(home, kReplaySteps - 16))
                .code,
            0);
  const auto trained = [&](int steps) {
    return eventually([&] { return home.json({"get", "jobs", kSmallId})["step"] >= steps; });
  };
  ASSERT_TRUE(trained(4));
  const json before = home.address();
  ASSERT_EQ(kill(before["pid"].get<pid_t>(), SIGKILL), 0);
  ASSERT_TRUE(home.next_controller(before["epoch"]));
  ASSERT_TRUE(trained(13));
  const std::string learner = std::string(kSmallId) + "/learner/0";
  // Its pid is known once the agent is back at the new controller.
  ASSERT_TRUE(eventually([&] { return actor(home, learner)["pid"].is_number_integer(); }));
  kill_rank(actor(home, learner));
  let_go(home);
  const Finished done = home.run({"wait", kSmallId, "--for", "Succeeded"});
  EXPECT_EQ(done.code, 0) << done.text();
  home.down();
  EXPECT_GT(journal_value(home.run_dir(kSmallId),
                          "SELECT count(*) FROM journal WHERE kind = 'retrained'"),
            0);
  const json replayed = expect_equal(home);
  EXPECT_EQ(replayed["recorded_steps"], kReplaySteps);
}

TEST(Replay, AGangWithSeveralUpdatesUnderAFixedLag) {
  const Home home;
  home.train(kSmallId, recorded_job({"async.schedule=fixed_lag", "learner.ranks=2",
                                     "learner.ppo_mini_batch_size=8", "learner.ppo_epochs=2",
                                     "algorithm.bypass_mode=false", "algorithm.use_kl_loss=true",
                                     "algorithm.rollout_is=token", "learner.max_token_len=128"}));
  expect_equal(home);
  const fs::path file = home.path() / "dump.json";
  expect_equal(home, {"--dump-step", "3", "--dump-file", file.string()});
  const json dump = json::parse(*read_file(file));
  for (const json& group : dump["groups"])
    for (const json& one : group["completions"]) {
      ASSERT_EQ(one["updates"].size(), 2u) << "one for each epoch, of whichever rank";
      EXPECT_EQ(one["updates"][1]["update"].get<int>(), one["updates"][0]["update"].get<int>() + 2);
      EXPECT_EQ(one["updates"][0]["reference_logprobs"].size(), one["tokens"].size());
      EXPECT_EQ(one["updates"][0]["importance"].size(), one["tokens"].size());
    }
}

// Weights that were trained before, as a Hugging Face checkpoint, computed in bf16 by gspo. Other
// weights in their place are told.
TEST(Replay, APretrainedModelInBf16) {
  const Home home;
  home.train(kSmallId, small_job(20, {"data.val_files=[]"}));
  const fs::path model = home.path() / "model";
  fs::copy(home.run_dir(kSmallId) / "checkpoints" / "step-20", model, fs::copy_options::recursive);
  fs::remove_all(home.run_dir(kSmallId));
  const Words pretrained = recorded_job(
      {"model.path=" + model.string(), "model.init=pretrained", "model.dtype=bfloat16",
       "warm_start=null", "algorithm.loss_mode=gspo", "learner.optimizer.lr=1e-3",
       "learner.optimizer.lr_scheduler_type=cosine", "learner.enable_gradient_checkpointing=true"});
  home.train(kSmallId, pretrained);
  expect_equal(home);
  fs::copy(home.run_dir(kSmallId) / "checkpoints" / ("step-" + std::to_string(kReplaySteps)), model,
           fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  const Finished other = home.run({"replay", kSmallId});
  EXPECT_EQ(other.code, 1) << other.text();
  EXPECT_NE(other.err.find("the start differs"), std::string::npos) << other.text();
}

}  // namespace
}  // namespace tandem::e2e
