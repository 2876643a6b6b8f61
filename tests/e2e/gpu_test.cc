// The real binary with a GPU, as far as that goes without one: the CUDA module is the emulator's,
// which computes what the kernels say on a CPU, and the driver's management library is a fake.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "tests/e2e/cluster_driver.h"

namespace tandem::e2e {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class OnAGpu : public testing::Test {
 protected:
  OnAGpu() {
    ::setenv("TANDEM_CUDA_MODULE", TANDEM_CUDA_EMULATED, 1);
    ::setenv("LD_LIBRARY_PATH", TANDEM_FAKE_NVML_FOLDER, 1);
    ::setenv("FAKE_GPUS", "1", 1);
  }
  ~OnAGpu() override {
    for (const char* name : {"TANDEM_CUDA_MODULE", "LD_LIBRARY_PATH", "FAKE_GPUS"})
      ::unsetenv(name);
  }

  // Rollout and learner share the GPU; small, for each of its threads is a fiber here.
  static Words job(const Words& settings = {}) {
    return small_job(
        kSteps,
        Words{"pools.rollout.gpus_per_actor=0.5", "rollout.n=4", "pools.learner.gpus_per_actor=0.5",
              "warm_start.max_steps=2", "warm_start.batch_size=16", "data.val_files=[]",
              "data.train_batch_size=2", "data.max_response_length=4", "reward.pattern=^[0-4]"} +
            settings);
  }

  static constexpr int kSteps = 3;
  Home home;
};

TEST_F(OnAGpu, RolloutAndLearnerAgreeToTheBitAndTheRunRepeats) {
  const Words settings{"async.schedule=fixed_lag", "async.max_staleness=0"};
  const json first = home.train(kSmallId, job(settings));
  EXPECT_EQ(first["ledger"]["trained"], kSteps * 2);
  EXPECT_EQ(first["logprob_diff"]["max_at_staleness_0"], 0.0);
  EXPECT_GT(first["logprob_diff"]["tokens_at_staleness_0"], 0);
  EXPECT_EQ(home.train("arithmetic-grpo-2", job(settings))["weights_sha256"],
            first["weights_sha256"]);
  home.expect_nothing_left();
}

TEST_F(OnAGpu, ACheckpointOfAGpuGoesOnOnACpu) {
  const json on_gpu = home.train(kSmallId, job({"learner.save_freq=1"}));
  const fs::path run = home.run_dir(kSmallId);
  const Finished more =
      home.run(Words{"run"} +
               job({"learner.save_freq=1", "pools.rollout.gpus_per_actor=0",
                    "pools.learner.gpus_per_actor=0", "learner.total_training_steps=5"}) +
               Words{"--resume", run.string()});
  EXPECT_EQ(more.code, 0) << more.text();
  EXPECT_EQ(home.result_of(kSmallId)["ledger"]["trained"], 5 * 2);
}

// Proof that both compute on it: without its driver neither starts.
TEST_F(OnAGpu, WhoIsPlacedOnAGpuUsesIt) {
  ::setenv("TANDEM_EMULATED_WITHOUT_DRIVER", "1", 1);
  for (const char* other : {"pools.rollout.gpus_per_actor=0", "pools.learner.gpus_per_actor=0"}) {
    const Finished done = home.run(Words{"run"} + job({other}));
    EXPECT_EQ(done.code, 1) << done.text();
    EXPECT_NE(done.err.find("no NVIDIA driver"), std::string::npos) << done.text();
  }
  ::unsetenv("TANDEM_EMULATED_WITHOUT_DRIVER");
}

// One GPU, of which the rollout has half: what does not fit is told before anything starts.
TEST_F(OnAGpu, MoreThanIsThereIsRefusedWithTheArithmetic) {
  const Finished ranks = home.run(Words{"run"} + job({"learner.ranks=2"}));
  EXPECT_EQ(ranks.code, 64) << ranks.text();
  EXPECT_NE(ranks.err.find("learner.ranks"), std::string::npos) << ranks.text();
  const Finished gpus = home.run(Words{"run"} + job({"pools.learner.gpus_per_actor=1"}));
  EXPECT_EQ(gpus.code, 2) << gpus.text();
  EXPECT_NE(gpus.err.find("GPUs"), std::string::npos) << gpus.text();
  const Finished tokens = home.run(Words{"run"} + job({"learner.max_token_len=4000000"}));
  EXPECT_EQ(tokens.code, 1) << tokens.text();
  EXPECT_NE(tokens.err.find("activations"), std::string::npos) << tokens.text();
  home.expect_nothing_left();
}

}  // namespace
}  // namespace tandem::e2e
