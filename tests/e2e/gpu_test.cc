// The real binary with a GPU, as far as that goes without one: the CUDA module is the emulator's,
// which runs the kernels on a CPU, and the driver's management library is a fake.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "runtime/base/file.h"
#include "tests/e2e/cluster_driver.h"
#include "tests/e2e/slurm_cluster.h"

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
    for (const char* name : {"TANDEM_CUDA_MODULE", "LD_LIBRARY_PATH", "FAKE_GPUS", "FAKE_GPUS_LOST",
                             "TANDEM_EMULATED_NEIGHBOUR", "TANDEM_EMULATED_GPUS"})
      ::unsetenv(name);
  }

  // The rank's log holds the faults that the emulator or its guards find in a rank, up to its end.
  void TearDown() override {
    for (const auto& entry : fs::recursive_directory_iterator(home.path())) {
      if (entry.path().extension() != ".log") continue;
      const std::string log = read_file(entry.path()).value();
      EXPECT_EQ(log.find("emulated GPU:"), std::string::npos) << entry.path() << ":\n" << log;
    }
  }

  // Rollout and learner share the GPU.
  static Words job(const Words& settings = {}) {
    return emulated_gpu_job(
        kSteps,
        Words{"pools.rollout.gpus_per_actor=0.5", "pools.learner.gpus_per_actor=0.5"} + settings);
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
  // The job runs again, and the weights take the other way.
  const json again =
      home.train("arithmetic-grpo-2", job(settings + Words{"weight_broadcast.type=cuda_ipc"}));
  EXPECT_EQ(again["weights_sha256"], first["weights_sha256"]);
  EXPECT_EQ(again["logprob_diff"]["max_at_staleness_0"], 0.0);
  home.expect_nothing_left();
}

// Slurm gives two of a node's three GPUs, and the agents offer no other.
TEST_F(OnAGpu, OfANodeOfSlurmsTheGpusOfTheAllocationAreOffered) {
  const auto cluster = SlurmCluster::make(home);
  if (!cluster) GTEST_SKIP() << "no Slurm, or no network namespaces here";
  ::setenv("FAKE_GPUS", "3", 1);
  const Finished submitted = home.run(Words{"slurm", "submit"} + job() + held(home, kSteps - 1) +
                                      Words{"--nodes", "2", "--gpus-per-node", "1"});
  ASSERT_EQ(submitted.code, 0) << submitted.text();
  const std::string id = submitted.out.substr(0, submitted.out.find('\n'));
  const fs::path metrics = home.run_dir(kSmallId) / "metrics.jsonl";
  ASSERT_TRUE(eventually([&] { return lines_of(metrics).size() >= kSteps - 1; }));
  const json nodes = home.json({"slurm", "exec", id, "--", "get", "nodes"});
  ASSERT_EQ(nodes.size(), 2u);
  for (const json& node : nodes) EXPECT_EQ(node["gpus"].size(), 2u) << node;
  let_go(home);
  EXPECT_TRUE(eventually([&] { return cluster->idle(); }));
  EXPECT_EQ(home.result_of(kSmallId)["state"], "Succeeded");
}

// The same promises in bf16, with a layer's activations computed twice.
TEST_F(OnAGpu, Bf16AgreesToTheBitAndItsCheckpointGoesOn) {
  const Words settings{"async.schedule=fixed_lag",   "async.max_staleness=0",
                       "model.dtype=bfloat16",       "learner.enable_gradient_checkpointing=true",
                       "algorithm.use_kl_loss=true", "algorithm.kl_loss_coef=0.01",
                       "learner.save_freq=1"};
  const json result = home.train(kSmallId, job(settings));
  EXPECT_EQ(result["logprob_diff"]["max_at_staleness_0"], 0.0);
  EXPECT_GT(result["logprob_diff"]["tokens_at_staleness_0"], 0);
  const double float32_bytes = home.train(
      "arithmetic-grpo-2", job({"weight_broadcast.type=disk"}))["weight_publish"]["bytes_mean"];
  EXPECT_NEAR(result["weight_publish"]["bytes_mean"], float32_bytes / 2, 0.01 * float32_bytes);
  const Finished more = home.run(Words{"run"} + job(settings) +
                                 Words{"--set", "learner.total_training_steps=5", "--resume",
                                       home.run_dir(kSmallId).string()});
  EXPECT_EQ(more.code, 0) << more.text();
  EXPECT_EQ(home.result_of(kSmallId)["ledger"]["trained"], 5 * 2);
  const Finished on_cpu =
      home.run(Words{"run"} + job(settings) +
               Words{"--set", "learner.total_training_steps=6", "--set",
                     "pools.learner.gpus_per_actor=0", "--set", "pools.rollout.gpus_per_actor=0",
                     "--resume", home.run_dir(kSmallId).string()});
  EXPECT_EQ(on_cpu.code, 0) << on_cpu.text();
  EXPECT_EQ(home.result_of(kSmallId)["ledger"]["trained"], 6 * 2);
}

// The learner's versions end with the learner; the next incarnation publishes the weights that it
// goes on from, and the rollout installs them.
TEST_F(OnAGpu, ALearnerWhoseMemoryHeldTheWeightsMayDie) {
  constexpr int kLongRun = 8;  // the rollout has not generated all when the kill comes
  home.up();
  const Finished submitted =
      home.run(Words{"submit"} +
               job({"weight_broadcast.type=cuda_ipc", "learner.save_freq=1",
                    "learner.total_training_steps=" + std::to_string(kLongRun)}) +
               held(home, 2));
  ASSERT_EQ(submitted.code, 0) << submitted.text();
  const auto step = [&] { return home.json({"get", "jobs", kSmallId})["step"].get<int>(); };
  ASSERT_TRUE(eventually([&] { return step() >= 2; }));
  const json before = actor(home, "learner/0");
  kill_rank(before);
  let_go(home);
  const Finished waited = home.run({"wait", kSmallId, "--for", "Succeeded", "--timeout", "90s"});
  EXPECT_EQ(waited.code, 0) << waited.text();
  home.down();
  home.expect_nothing_left();
  EXPECT_EQ(home.result_of(kSmallId)["ledger"]["trained"], kLongRun * 2);
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

// The proof that both compute on it: without its driver neither starts.
TEST_F(OnAGpu, WhoIsPlacedOnAGpuUsesIt) {
  ::setenv("TANDEM_EMULATED_WITHOUT_DRIVER", "1", 1);
  for (const char* other : {"pools.rollout.gpus_per_actor=0", "pools.learner.gpus_per_actor=0"}) {
    const Finished done = home.run(Words{"run"} + job({other}));
    EXPECT_EQ(done.code, 1) << done.text();
    EXPECT_NE(done.err.find("no NVIDIA driver"), std::string::npos) << done.text();
  }
  ::unsetenv("TANDEM_EMULATED_WITHOUT_DRIVER");
}

TEST_F(OnAGpu, OfTwoEachHasItsOwn) {
  ::unsetenv("FAKE_GPUS");
  ::setenv("TANDEM_EMULATED_GPUS", "2", 1);
  const json result = home.train(
      kSmallId, job({"pools.rollout.gpus_per_actor=1", "pools.learner.gpus_per_actor=1"}));
  EXPECT_EQ(result["ledger"]["trained"], kSteps * 2);
}

// The GPU has 4 GiB. The rollout's share is 2, and its pages could use all of it; 1.5 are left when
// it takes them.
TEST_F(OnAGpu, ARolloutMakesDoWithWhatItsNeighboursLeave) {
  ::setenv("TANDEM_EMULATED_NEIGHBOUR", "2684354560", 1);
  const json result = home.train(
      kSmallId, job({"rollout.gpu_memory_utilization=0.5", "rollout.max_num_seqs=65536",
                     "rollout.max_num_batched_tokens=65536", "async.max_concurrent_rollouts=64"}));
  EXPECT_EQ(result["ledger"]["trained"], kSteps * 2);
}

// One GPU, of which the rollout has half: a job that does not fit is refused before anything
// starts.
TEST_F(OnAGpu, MoreThanIsThereIsRefusedWithTheArithmetic) {
  const Finished ranks = home.run(Words{"run"} + job({"learner.ranks=2"}));
  EXPECT_EQ(ranks.code, 2) << ranks.text();
  EXPECT_NE(ranks.err.find("learner.ranks=1"), std::string::npos) << ranks.text();
  const Finished gpus = home.run(Words{"run"} + job({"pools.learner.gpus_per_actor=1"}));
  EXPECT_EQ(gpus.code, 2) << gpus.text();
  EXPECT_NE(gpus.err.find("GPUs"), std::string::npos) << gpus.text();
  ::setenv("FAKE_GPUS", "2", 1);  // a second one would do, if it answered
  ::setenv("FAKE_GPUS_LOST", "1", 1);
  const Finished lost = home.run(Words{"run"} + job({"pools.learner.gpus_per_actor=1"}));
  EXPECT_EQ(lost.code, 2) << lost.text();
  EXPECT_NE(lost.err.find("cannot use GPU 1: GPU is lost"), std::string::npos) << lost.text();
  const Finished doctor = home.run({"doctor"});
  EXPECT_NE(doctor.out.find("GPU 1: GPU is lost"), std::string::npos) << doctor.text();
  EXPECT_NE(doctor.out.find("Fake GPU 0"), std::string::npos) << doctor.text();
  const Finished tokens = home.run(Words{"run"} + job({"learner.max_token_len=4000000"}));
  EXPECT_EQ(tokens.code, 1) << tokens.text();
  EXPECT_NE(tokens.err.find("activations"), std::string::npos) << tokens.text();
  home.expect_nothing_left();
}

}  // namespace
}  // namespace tandem::e2e
