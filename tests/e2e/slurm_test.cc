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
  std::string submit(const Words& words) {
    const Finished submitted =
        home_.run(Words{"slurm", "submit"} + words + Words{"--nodes", "3", "--time", "30"});
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
  // Whether an actor of the run was ever started there.
  bool was_used(const std::string& node) {
    return home_.run({"events", "-j", kSmallId}).out.find("node " + node + " is starting") !=
           std::string::npos;
  }
  void expect_nothing_left() {
    for (const char* node : {"n1", "n2", "n3"})
      EXPECT_TRUE(eventually([&] { return cluster_->processes_on(node) == 0; })) << node;
  }

  Home home_;
  std::unique_ptr<SlurmCluster> cluster_;
};

const Words kSpread = sets({"pools.rollout.strategy=spread", "pools.learner.strategy=spread"});

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
  EXPECT_TRUE(eventually([&] { return fs::exists(home_.run_dir(kSmallId) / "result.json"); }))
      << printed(id);
  EXPECT_EQ(home_.result_of(kSmallId)["state"], "Succeeded") << printed(id);
}

TEST_F(Slurm, OneThatIsCancelledSavesAndLeavesNothing_SL1) {
  const std::string id =
      submit(small_job(kSlurmSteps, {"learner.save_freq=0"}) + kSpread + held(home_, 20));
  ASSERT_TRUE(eventually([&] { return trained(10); })) << printed(id);
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
  const Words job = small_job(kSlurmSteps, {"async.schedule=fixed_lag", "learner.save_freq=5"});
  const std::string id = submit(job + held(home_, 20));
  ASSERT_TRUE(eventually([&] { return trained(10); })) << printed(id);
  cluster_->slurm({"scontrol", "requeue", id});
  let_go(home_);
  EXPECT_TRUE(eventually([&] { return cluster_->idle(); })) << printed(id);
  EXPECT_EQ(home_.result_of(kSmallId)["state"], "Succeeded") << printed(id);
  EXPECT_FALSE(fs::exists(home_.path() / "runs/arithmetic-grpo-2")) << "one run";
  const Home alone;
  let_go(alone);
  EXPECT_EQ(home_.result_of(kSmallId)["weights_sha256"],
            alone.train(kSmallId, job + held(alone, 20))["weights_sha256"]);
}

TEST_F(Slurm, WhatSlurmCannotTakeIsSaid) {
  const Words job = small_job(2);
  const auto expect_said = [&](const Words& words, const std::string& part) {
    const Finished refused = home_.run(Words{"slurm", "submit"} + words);
    EXPECT_NE(refused.code, 0);
    EXPECT_NE(refused.text().find(part), std::string::npos) << refused.text();
  };
  expect_said(job + Words{"--nodes", "2", "--min-nodes", "3"}, "more than --nodes");
  expect_said(job + Words{"--partition", "a b"}, "not one word");
  expect_said(job + Words{"--sbatch", "constraint=a"}, "does not begin with --");
  expect_said(job + Words{"--partition", "nowhere"}, "invalid partition");
  expect_said({"/no/such.yaml"}, "/no/such.yaml");
}

}  // namespace
}  // namespace tandem::e2e
