// Weights by NCCL with the real binary and real processes, without a GPU: the CUDA module is the
// emulator's, and the NCCL library is our own fake, which moves the bytes by sockets and makes the
// faults that the test asks for.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "runtime/base/file.h"
#include "tests/e2e/cluster_driver.h"

namespace tandem::e2e {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class ByNccl : public testing::Test {
 protected:
  ByNccl() {
    set("TANDEM_CUDA_MODULE", TANDEM_CUDA_EMULATED);
    set("LD_LIBRARY_PATH", TANDEM_FAKE_NVML_FOLDER);
    set("TANDEM_NCCL_LIBRARY", TANDEM_FAKE_NCCL);
    set("TANDEM_EMULATED_GPUS", "4");
  }
  ~ByNccl() override {
    for (const std::string& name : names_) ::unsetenv(name.c_str());
  }

  void set(const std::string& name, const std::string& value) {
    ::setenv(name.c_str(), value.c_str(), 1);
    names_.push_back(name);
  }

  // Each rank has a GPU of its own.
  static Words job(int steps, const Words& settings = {}) {
    return emulated_gpu_job(
        steps, Words{"pools.rollout.gpus_per_actor=1", "pools.learner.gpus_per_actor=1",
                     "pools.rollout.cpus_per_actor=0.2", "rollout.replicas=2",
                     "weight_broadcast.timeout_s=10"} +
                   settings);
  }
  static constexpr int kGroups = 2;  // per step

  // How often `text` stands in the logs of those actors of the job whose names begin with `actor`.
  int said_in_logs(const std::string& actor, const std::string& text) const {
    int count = 0;
    for (const auto& entry : fs::recursive_directory_iterator(home.run_dir(kSmallId) / "logs")) {
      if (entry.path().extension() != ".log") continue;
      if (entry.path().string().find("/logs/" + actor) == std::string::npos) continue;
      const std::string log = read_file(entry.path()).value();
      for (auto at = log.find(text); at != std::string::npos; at = log.find(text, at + 1)) ++count;
    }
    return count;
  }

  json job_now() const { return home.json({"get", "jobs", kSmallId}); }
  int step() const { return job_now()["step"].get<int>(); }

  Home home;

 private:
  std::vector<std::string> names_;
};

// The rollout's GPU sends to the ranks of a server on another one (by the fake's own count).
TEST_F(ByNccl, AServerOfVllmIsFedByTheRollout) {
  constexpr int kSteps = 4;
  const json result =
      home.train(kSmallId, job(kSteps, {"rollout.name=vllm", "rollout.replicas=1",
                                        "rollout.engine.command=" + json{TANDEM_FAKE_VLLM}.dump(),
                                        "rollout.engine.env={TANDEM_FAKE_NCCL_DEVICE: \"7\"}",
                                        "rollout.engine.weight_transfer=nccl",
                                        "rollout.engine.logprob_tolerance=1e-4"}));
  EXPECT_EQ(result["ledger"]["trained"], kSteps * kGroups);
  EXPECT_GT(said_in_logs("rollout", "event=engine_ready engine=vllm"), 0);
  EXPECT_EQ(said_in_logs("rollout", "event=push_failed"), 0);
  EXPECT_LT(result["logprob_diff"]["max_at_staleness_0"], 1e-4);
  home.expect_nothing_left();
}

// The rollout's GPU is its server's, too. One push breaks off.
TEST_F(ByNccl, AServerOfVllmReadsABlockOfItsGpu) {
  constexpr int kSteps = 4;
  const json env{{"TANDEM_CUDA_MODULE", TANDEM_CUDA_EMULATED}, {"TANDEM_EMULATED_GPUS", "4"}};
  const json fault{"--fault", "break-update", "--fault-at", "3"};
  const json result = home.train(
      kSmallId,
      job(kSteps, {"rollout.name=vllm", "rollout.replicas=1",
                   "rollout.engine.command=" + json{TANDEM_FAKE_VLLM}.dump(),
                   "rollout.engine.args=" + fault.dump(), "rollout.engine.env=" + env.dump(),
                   "rollout.engine.weight_transfer=ipc", "rollout.engine.logprob_tolerance=1e-4"}));
  EXPECT_EQ(result["ledger"]["trained"], kSteps * kGroups);
  EXPECT_EQ(said_in_logs("rollout", "event=push_failed phase=send"), 1) << "and made once more";
  EXPECT_LT(result["logprob_diff"]["max_at_staleness_0"], 1e-4);
  home.expect_nothing_left();
}

TEST_F(ByNccl, TheWeightsAreThoseOfSharedMemory) {
  constexpr int kSteps = 4;
  const Words lag{"async.schedule=fixed_lag", "async.max_staleness=1"};
  const json by_nccl = home.train(kSmallId, job(kSteps, lag + Words{"weight_broadcast.type=nccl"}));
  EXPECT_EQ(by_nccl["ledger"]["trained"], kSteps * kGroups);
  EXPECT_GT(said_in_logs("rollout", "event=weights_by_broadcast"), 0);
  const json by_shm =
      home.train("arithmetic-grpo-2", job(kSteps, lag + Words{"weight_broadcast.type=shm"}));
  EXPECT_EQ(by_nccl["weights_sha256"], by_shm["weights_sha256"]);
  EXPECT_EQ(by_nccl["logprob_diff"]["max_at_staleness_0"], 0.0);
  home.expect_nothing_left();
}

// A rollout is killed in the middle of a broadcast and comes back, and one is added: the job goes
// on, and both take part in later broadcasts.
TEST_F(ByNccl, ARolloutDiesInABroadcastAndAnotherIsAdded) {
  constexpr int kSteps = 48;
  const fs::path now = home.path() / "die-now";
  set("TANDEM_FAKE_NCCL_FAULTS", "rank=1,op=broadcast,fault=die,when=in,file=" + now.string());
  home.up();
  const Finished submitted = home.run(
      Words{"submit"} + job(kSteps, {"weight_broadcast.type=nccl"}) + held(home, kSteps - 12));
  ASSERT_EQ(submitted.code, 0) << submitted.text();
  const auto has_said = [&](const char* who, const char* line) {
    return eventually([&] { return said_in_logs(who, line) > 0; });
  };
  ASSERT_TRUE(has_said("rollout.0.", "event=weights_by_broadcast"));
  ASSERT_TRUE(has_said("rollout.1.", "event=weights_by_broadcast"));

  const json before = actor(home, "rollout/0");
  std::ofstream(now).put('x');
  ASSERT_TRUE(eventually([&] { return !fs::exists(now); })) << "no rank was killed";
  ASSERT_TRUE(eventually([&] {
    return actor(home, "rollout/0")["incarnation"] != before["incarnation"] &&
           job_now()["actors"]["rollout"]["ready"] == 2;
  }));
  const Finished scaled = home.run({"scale", kSmallId, "rollout=3"});
  ASSERT_EQ(scaled.code, 0) << scaled.text();
  ASSERT_TRUE(eventually([&] { return job_now()["actors"]["rollout"]["ready"] == 3; }));
  ASSERT_TRUE(has_said("rollout.2.", "event=epoch_joined"));
  let_go(home);
  const Finished waited = home.run({"wait", kSmallId, "--for", "Succeeded", "--timeout", "90s"});
  EXPECT_EQ(waited.code, 0) << waited.text();
  home.down();
  home.expect_nothing_left();
  EXPECT_EQ(home.result_of(kSmallId)["ledger"]["trained"], kSteps * kGroups);
  expect_ledger_balances(home.run_dir(kSmallId), home.result_of(kSmallId));
  EXPECT_GT(said_in_logs("rollout.2.", "event=weights_by_broadcast"), 0);
}

// A broadcast that hangs ends by its deadline, and a rollout whose call of NCCL does not come back
// is left out and ends by name; the job trains on meanwhile.
TEST_F(ByNccl, HangsCostTheJobNoStep) {
  constexpr int kEndless = 100000;
  const fs::path hang = home.path() / "hang-now", block = home.path() / "block-now";
  set("TANDEM_FAKE_NCCL_FAULTS", "rank=2,op=broadcast,fault=hang,file=" + hang.string() +
                                     ";rank=2,op=broadcast,fault=block,file=" + block.string());
  home.up();
  const Finished submitted =
      home.run(Words{"submit"} +
               job(kEndless, {"weight_broadcast.type=nccl", "weight_broadcast.timeout_s=2"}));
  ASSERT_EQ(submitted.code, 0) << submitted.text();
  ASSERT_TRUE(
      eventually([&] { return said_in_logs("rollout.1.", "event=weights_by_broadcast") > 0; }));
  // The file makes it happen; the actor says so, and the job trains on.
  const auto happens = [&](const fs::path& file, const std::string& who, const char* line) {
    const int before = said_in_logs(who, line), steps = step();
    std::ofstream(file).put('x');
    return eventually([&] { return said_in_logs(who, line) > before && step() > steps; });
  };
  EXPECT_TRUE(happens(hang, "",
                      "event=weights_epoch_failed"));  // in the log of the rank that sees it first
  ASSERT_TRUE(eventually([&] { return said_in_logs("rollout.1.", "event=epoch_joined") > 1; }));
  const std::string life = actor(home, "rollout/1")["incarnation"].dump();
  EXPECT_TRUE(happens(block, "rollout.1.", "event=nccl_stuck call=\"ncclBroadcast of "));
  EXPECT_TRUE(eventually([&] {
    const json now = actor(home, "rollout/1");
    return now["incarnation"].dump() != life && now["state"] == "Ready";
  }));
  const Finished cancelled = home.run({"cancel", kSmallId});
  EXPECT_EQ(cancelled.code, 0) << cancelled.text();
  home.down();
  home.expect_nothing_left();
  expect_ledger_balances(home.run_dir(kSmallId), home.result_of(kSmallId));
}

// Nobody else is started again: the ranks leave the epochs of the former exchange, and the next one
// has them form new ones.
TEST_F(ByNccl, AControllerDiesAndTheWeightsAreBroadcastAgain) {
  constexpr int kSteps = 40;
  home.up();
  const Words lag{"async.schedule=fixed_lag", "async.max_staleness=1",
                  "weight_broadcast.type=nccl"};
  const Finished submitted = home.run(Words{"submit"} + job(kSteps, lag) + held(home, kSteps - 8));
  ASSERT_EQ(submitted.code, 0) << submitted.text();
  const auto broadcasts = [&] { return said_in_logs("rollout.0.", "event=weights_by_broadcast"); };
  ASSERT_TRUE(eventually([&] { return broadcasts() > 0; }));
  const auto incarnations = [&] {
    json all;
    for (const char* name : {"learner/0", "rollout/0", "rollout/1", "reward/0"})
      all.push_back(actor(home, name)["incarnation"]);
    return all;
  };
  const json before = incarnations();
  for (int i = 0; i < 2; ++i) {
    const json former = home.address();
    const int seen = broadcasts();
    ASSERT_EQ(kill(former["pid"].get<pid_t>(), SIGKILL), 0);
    ASSERT_TRUE(home.next_controller(former["epoch"]));
    ASSERT_TRUE(eventually([&] { return broadcasts() > seen; })) << job_now();
  }
  EXPECT_EQ(incarnations(), before);
  let_go(home);
  const Finished waited = home.run({"wait", kSmallId, "--for", "Succeeded", "--timeout", "90s"});
  EXPECT_EQ(waited.code, 0) << waited.text();
  home.down();
  home.expect_nothing_left();
  const json result = home.result_of(kSmallId);
  expect_ledger_balances(home.run_dir(kSmallId), result);
  EXPECT_EQ(result["logprob_diff"]["max_at_staleness_0"], 0.0);
  const auto rows = [&](const std::string& kind) {
    return journal_value(home.run_dir(kSmallId),
                         "SELECT count(*) FROM journal WHERE kind = '" + kind + "'");
  };
  EXPECT_EQ(rows("followed"), 2);
  EXPECT_GE(rows("broadcast_epoch"), 3);
  EXPECT_EQ(rows("learner_restarted"), 0);
}

// The learner's two ranks have a GPU each and share the gradients by NCCL.
TEST_F(ByNccl, ALearnerOfTwoGpusTrainsAndOutlivesARank) {
  constexpr int kSteps = 6;
  const Words settings{"weight_broadcast.type=nccl", "learner.ranks=2", "rollout.replicas=1",
                       "async.schedule=fixed_lag", "async.max_staleness=1"};
  const json alone = home.train(kSmallId, job(kSteps, settings));
  EXPECT_EQ(alone["ledger"]["trained"], kSteps * kGroups);
  EXPECT_EQ(alone["logprob_diff"]["max_at_staleness_0"], 0.0);

  home.up();
  const std::string second = "arithmetic-grpo-2";
  const Finished submitted =
      home.run(Words{"submit"} + job(kSteps, settings + Words{"learner.save_freq=1"}));
  ASSERT_EQ(submitted.code, 0) << submitted.text();
  ASSERT_TRUE(eventually([&] {
    return home.json({"get", "jobs", second})["step"].get<int>() >= 2;
  }));
  kill_rank(actor(home, second + "/learner/0"));
  const Finished waited = home.run({"wait", second, "--for", "Succeeded", "--timeout", "90s"});
  EXPECT_EQ(waited.code, 0) << waited.text();
  home.down();
  EXPECT_EQ(home.result_of(second)["weights_sha256"], alone["weights_sha256"]);
  home.expect_nothing_left();
}

}  // namespace
}  // namespace tandem::e2e
