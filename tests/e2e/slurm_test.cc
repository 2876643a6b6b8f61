// Jobs on a real Slurm cluster, submitted by `tandem slurm submit`.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/e2e/cluster_driver.h"
#include "tests/e2e/slurm_cluster.h"

namespace tandem::e2e {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr int kSlurmSteps = 30;

class Slurm : public ::testing::Test {
 protected:
  void SetUp() override {
    cluster_ = SlurmCluster::make(home_);
    if (!cluster_) GTEST_SKIP() << "no Slurm, or no network namespaces here";
  }
  // Returns the number of Slurm's job.
  std::string submit(const Words& words, const std::string& nodes = "3",
                     const std::string& minutes = "30") {
    const Finished submitted =
        home_.run(Words{"slurm", "submit", "--nodes", nodes, "--time", minutes} + words);
    EXPECT_EQ(submitted.code, 0) << submitted.text();
    return submitted.out.substr(0, submitted.out.find('\n'));
  }
  std::string printed(const std::string& id) const {
    std::ifstream file(home_.path() / "slurm" / (id + ".log"));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  bool trained(std::size_t steps) const {
    return lines_of(home_.run_dir(kSmallId) / "metrics.jsonl").size() >= steps;
  }
  bool has_ended() const { return fs::exists(home_.run_dir(kSmallId) / "result.json"); }
  // Whether an actor of the run was ever started there.
  bool was_used(const std::string& node) {
    return home_.run({"events", "-j", kSmallId}).out.find("node " + node + " is starting") !=
           std::string::npos;
  }
  void expect_nothing_left() {
    for (const char* node : {"n1", "n2", "n3"})
      EXPECT_TRUE(eventually([&] { return cluster_->processes_on(node) == 0; })) << node;
  }
  // The job ends with the weights of a run on one machine that nothing has disturbed.
  void expect_undisturbed(const std::string& id, const Words& job) {
    EXPECT_TRUE(eventually([&] { return cluster_->idle(); })) << printed(id);
    ASSERT_EQ(home_.result_of(kSmallId)["state"], "Succeeded") << printed(id);
    EXPECT_FALSE(fs::exists(home_.path() / "runs/arithmetic-grpo-2")) << "one run";
    expect_nothing_left();
    const Home alone;
    let_go(alone);
    EXPECT_EQ(home_.result_of(kSmallId)["weights_sha256"],
              alone.train(kSmallId, job + held(alone, 20))["weights_sha256"]);
  }

  Home home_;
  std::unique_ptr<SlurmCluster> cluster_;
};

const Words kSpread = sets({"pools.rollout.strategy=spread", "pools.learner.strategy=spread"});
const Words kRepeats = small_job(kSlurmSteps, {"async.schedule=fixed_lag", "learner.save_freq=5"});

// The weights are those of one machine.
TEST_F(Slurm, AJobLearnsOnSeveralNodesAndLeavesNothing) {
  const Words job = small_job(kSlurmSteps, {"async.schedule=fixed_lag", "rollout.replicas=2"});
  const std::string id = submit(job + kSpread);
  EXPECT_TRUE(eventually([&] { return cluster_->idle(); })) << printed(id);
  EXPECT_NE(printed(id).find("Succeeded"), std::string::npos) << printed(id);
  expect_nothing_left();
  EXPECT_TRUE(was_used("n1") && was_used("n2")) << home_.run({"events", "-j", kSmallId}).text();
  const json result = home_.result_of(kSmallId);
  expect_ledger_balances(home_.run_dir(kSmallId), result);
  const Home alone;
  EXPECT_EQ(result["weights_sha256"], alone.train(kSmallId, job)["weights_sha256"]);
}

TEST_F(Slurm, ALostNodeCostsItsActorsAlone) {
  const std::string id =
      submit(small_job(kSlurmSteps, {"rollout.replicas=2"}) + kSpread + held(home_, 20));
  ASSERT_TRUE(eventually([&] { return trained(10); })) << printed(id);
  const std::string lost = was_used("n3") ? "n3" : "n2";
  ASSERT_TRUE(was_used(lost)) << home_.run({"events", "-j", kSmallId}).text();
  cluster_->kill_node(lost);
  let_go(home_);
  EXPECT_TRUE(eventually([&] { return has_ended(); })) << printed(id);
  EXPECT_EQ(home_.result_of(kSmallId)["state"], "Succeeded") << printed(id);
}

// A command runs beside its controller, from the login host.
TEST_F(Slurm, OneThatIsScaledAndThenCancelledSavesAndLeavesNothing_SL1) {
  const std::string id =
      submit(small_job(kSlurmSteps, {"learner.save_freq=0"}) + kSpread + held(home_, 20));
  ASSERT_TRUE(eventually([&] { return trained(10); })) << printed(id);
  const auto asked = [&](const Words& words) {
    return home_.run(Words{"slurm", "exec", id, "--"} + words);
  };
  EXPECT_EQ(asked({"scale", kSmallId, "rollout=2"}).code, 0);
  const std::string second = std::string(kSmallId) + "/rollout/1";
  EXPECT_TRUE(eventually([&] {
    const Finished actors = asked({"get", "actors", "-o", "name"});
    return actors.code == 0 && actors.out.find(second) != std::string::npos;
  })) << asked({"get", "actors"}).text();
  EXPECT_EQ(asked({"get", "jobs", "no-such"}).code,
            home_.run({"slurm", "exec", "7", "--", "x"}).code)
      << "nothing is found";
  const auto saved = [&] {
    const fs::directory_iterator all(home_.run_dir(kSmallId) / "checkpoints");
    return std::distance(begin(all), end(all));
  };
  const auto before = saved();
  cluster_->slurm({"scancel", id});
  EXPECT_TRUE(eventually([&] { return cluster_->idle(); })) << printed(id);
  expect_nothing_left();
  EXPECT_EQ(home_.result_of(kSmallId)["state"], "Cancelled");
  EXPECT_GT(saved(), before) << printed(id);
  EXPECT_NE(printed(id).find("resume with"), std::string::npos) << printed(id);
}

TEST_F(Slurm, OneThatIsStartedAgainGoesOnWithItsRun_SL2) {
  const std::string id = submit(kRepeats + held(home_, 20));
  ASSERT_TRUE(eventually([&] { return trained(10); })) << printed(id);
  cluster_->slurm({"scontrol", "requeue", id});
  let_go(home_);
  expect_undisturbed(id, kRepeats);
}

TEST_F(Slurm, OneWhoseTimeIsNearlyOverSavesAndIsStartedAgain_SL3) {
  const std::string id = submit(kRepeats + held(home_, 20), "3", "1");
  EXPECT_TRUE(eventually([&] { return has_ended(); })) << printed(id);
  EXPECT_EQ(home_.result_of(kSmallId)["state"], "Cancelled");
  let_go(home_);
  expect_undisturbed(id, kRepeats);
}

TEST_F(Slurm, OneWhoseNodesAreTakenSavesAndGoesOnAfterwards) {
  const std::string id = submit(kRepeats + kSpread + held(home_, 20));
  ASSERT_TRUE(eventually([&] { return trained(10); })) << printed(id);
  const std::string log = (home_.path() / "other.log").string();
  cluster_->slurm({"sbatch", "--partition=first", "--nodes=3", "--exclusive", "--output=" + log,
                   "--wrap=echo it ran"});
  EXPECT_TRUE(eventually([&] { return fs::exists(log); })) << printed(id);
  EXPECT_EQ(home_.result_of(kSmallId)["state"], "Cancelled") << printed(id);
  let_go(home_);
  expect_undisturbed(id, kRepeats);
}

TEST_F(Slurm, OneWhoseFirstNodeIsLostIsStartedAgainOnOthers) {
  const std::string id = submit(kRepeats + held(home_, 20) + Words{"--node-grace-s", "10"}, "2");
  ASSERT_TRUE(eventually([&] { return trained(10); })) << printed(id);
  cluster_->kill_node("n1");
  let_go(home_);
  EXPECT_TRUE(eventually([&] { return has_ended(); })) << printed(id);
  expect_undisturbed(id, kRepeats);
}

TEST_F(Slurm, ASweepIsAJobArray) {
  const std::string id = submit(small_job(3) + Words{"--sweep", "seed=1,2"}, "1");
  EXPECT_TRUE(eventually([&] { return cluster_->idle(); }));
  for (const char* task : {"_0", "_1"})
    EXPECT_NE(printed(id + task).find("Succeeded"), std::string::npos) << printed(id + task);
  const json runs = home_.json({"get", "runs"});
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0]["group"], runs[1]["group"]);
  EXPECT_NE(home_.result_of(kSmallId)["weights_sha256"],
            home_.result_of("arithmetic-grpo-2")["weights_sha256"]);
}

TEST_F(Slurm, WhatSlurmCannotTakeIsSaid) {
  const Words job = small_job(2);
  const auto expect_said = [&](const Words& words, const std::string& part) {
    const Finished refused = home_.run(Words{"slurm"} + words);
    EXPECT_NE(refused.code, 0);
    EXPECT_NE(refused.text().find(part), std::string::npos) << refused.text();
  };
  const Words submit{"submit"};
  expect_said(submit + job + Words{"--nodes", "2", "--min-nodes", "3"}, "more than --nodes");
  expect_said(submit + job + Words{"--partition", "a b"}, "not one word");
  expect_said(submit + job + Words{"--sbatch", "constraint=a"}, "does not begin with --");
  expect_said(submit + job + Words{"--partition", "nowhere"}, "invalid partition");
  expect_said(submit + Words{"/no/such.yaml"}, "/no/such.yaml");
  expect_said(submit + job + Words{"more"}, "one word too many");
  expect_said({"exec", "77"}, "a command are required");
  expect_said({"exec", "77", "--", "get", "jobs"}, "has no controller now");
}

}  // namespace
}  // namespace tandem::e2e
