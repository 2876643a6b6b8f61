// Jobs whose engine is a server: a fake of vLLM, SGLang or TensorRT-LLM with the model of the
// quickstart inside, so that log-probabilities are the learner's to the bit and every promise of a
// run can be asked for.
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>

#include "runtime/link/free_port.h"
#include "tests/e2e/cluster_driver.h"
#include "tests/e2e/network.h"

namespace tandem::e2e {
namespace {

using nlohmann::json;

constexpr int kEngineSteps = 12;

const std::string kServedModel = TANDEM_SOURCE_DIR "/configs/models/arithmetic";

struct Served {
  const char* name;  // rollout.name
  Words command;
  Words arguments;           // of one that is started by hand
  const char* wrong_answer;  // a fault by which an answer does not fit
  const char* program;       // as its last words begin
};
const Served kServed[] = {
    {"vllm",
     {TANDEM_FAKE_VLLM},
     {kServedModel, "--enable-scale-out", "--weight-transfer-config",
      R"({"backend":"tandem_tcp"})"},
     "other-answer",
     "vllm"},
    {"sglang", {TANDEM_FAKE_SGLANG}, {"--model-path", kServedModel}, "other-answer", "sglang"},
    {"tensorrt_llm",
     {TANDEM_FAKE_TRTLLM, TANDEM_FAKE_VLLM},
     {"--served-model-name", "m", "--llm",
      json{{"model", kServedModel},
           {"dtype", "float32"},
           {"max_seq_len", 128},
           {"max_batch_size", 32},
           {"max_num_tokens", 256}}
          .dump()},
     "garbage",
     "tandem_trtllm"}};

Words served_job(const Served& served, const Words& args = {}, const Words& settings = {}) {
  return small_job(kEngineSteps, Words{std::string("rollout.name=") + served.name,
                                       "rollout.engine.command=" + json(served.command).dump(),
                                       "rollout.engine.args=" + json(args).dump(),
                                       // The fake computes as the learner does.
                                       "rollout.engine.logprob_tolerance=1e-6"} +
                                     settings);
}

// A fault that the first server has, and the ones after it have not.
Words once(const Home& home, const std::string& fault, int at) {
  return {"--fault", fault, "--fault-at", std::to_string(at), "--fault-once", home.path() / "met"};
}

void expect_right(const Home& home, const json& result) {
  EXPECT_LE(result["staleness"]["max"], 2);
  EXPECT_EQ(result["logprob_diff"]["max_at_staleness_0"], 0.0) << "the server's are the learner's";
  EXPECT_GT(result["logprob_diff"]["tokens_at_staleness_0"], 0);
  EXPECT_EQ(result["ledger"]["trained"], kEngineSteps * kGroupsPerStep);
  expect_ledger_balances(home.run_dir(kSmallId), result);
}

std::string rollout_logs(const Home& home) {
  std::string text;
  for (const auto& entry : std::filesystem::directory_iterator(home.run_dir(kSmallId) / "logs"))
    if (entry.path().filename().string().starts_with("rollout")) {
      std::ifstream file(entry.path());
      text.append(std::istreambuf_iterator<char>(file), {});
    }
  return text;
}

// For PrintTo of the framework.
std::ostream& operator<<(std::ostream& out, const Served& served) { return out << served.name; }

class Engines : public ::testing::TestWithParam<Served> {};
INSTANTIATE_TEST_SUITE_P(Servers, Engines, ::testing::ValuesIn(kServed),
                         [](const auto& test) { return std::string(test.param.name); });

TEST_P(Engines, AServerTrainsAsTheNativeEngineDoes) {
  const Home home;
  const json result = home.train(kSmallId, served_job(GetParam(), {}, {"rollout.dtype=bfloat16"}));
  expect_right(home, result);
  EXPECT_GT(result["eval"]["final"], result["eval"]["before"]);
  const std::string logs = rollout_logs(home);
  EXPECT_NE(logs.find(std::string("event=engine_ready engine=") + GetParam().name),
            std::string::npos)
      << logs;
  EXPECT_NE(logs.find("INFO: Application startup complete."), std::string::npos)
      << "the server's lines are in the rollout's log";
  EXPECT_NE(logs.find("dtype=torch.bfloat16"), std::string::npos) << logs;
  EXPECT_EQ(logs.find("event=version_unproven"), std::string::npos) << "EV-4";
  home.expect_nothing_left();
}

TEST_P(Engines, AServerThatDiesCostsARestartAndNoSample) {
  const Home home;
  const json result = home.train(kSmallId, served_job(GetParam(), once(home, "die", 60)));
  expect_right(home, result);
  EXPECT_NE(rollout_logs(home).find(std::string(GetParam().program) + ": error: "),
            std::string::npos);
}

TEST_P(Engines, ATransferThatBreaksOffIsMadeAgainAndAServerThatDiesInOneIsReplaced) {
  for (const char* fault : {"break-update", "die-in-update"}) {
    const Home home;
    const json result = home.train(kSmallId, served_job(GetParam(), once(home, fault, 4)));
    expect_right(home, result);
    const std::string logs = rollout_logs(home);
    EXPECT_TRUE(logs.find("event=push_failed") != std::string::npos ||
                logs.find("killed in the middle of an update") != std::string::npos)
        << fault;
  }
}

// The labels of the server say that it has the version: only its log-probabilities tell.
TEST_P(Engines, AVersionThatTheServerDoesNotComputeWithIsPushedAgain) {
  const Home home;
  const json result = home.train(kSmallId, served_job(GetParam(), once(home, "stale-update", 5)));
  expect_right(home, result);
  const std::string logs = rollout_logs(home);
  EXPECT_NE(logs.find("event=push_failed phase=probe"), std::string::npos) << logs;
}

TEST_P(Engines, AWrongAnswerIsAskedForAgain) {
  const Home home;
  const json result =
      home.train(kSmallId, served_job(GetParam(), once(home, GetParam().wrong_answer, 30)));
  expect_right(home, result);
  EXPECT_NE(rollout_logs(home).find("event=ask_failed"), std::string::npos);
}

TEST_P(Engines, AServerThatRunsAlreadyIsDrivenAndLeftAlone) {
  const Home home;
  const std::string name = GetParam().name, port = std::to_string(*link::free_port());
  const Words program{"env", "-u", "TANDEM_HOME", "VLLM_SERVER_DEV_MODE=1",
                      "PYTHONPATH=" + std::string(TANDEM_SOURCE_DIR) + "/actors/rollout/external"};
  Process process = home.start_program(program + GetParam().command + GetParam().arguments +
                                       Words{"--host", "127.0.0.1", "--port", port});
  ASSERT_TRUE(process.said("Application startup complete"));
  const std::string url = "rollout.engine.url=[http://127.0.0.1:" + port + "]";
  const json result = home.train(kSmallId, small_job(kEngineSteps, {"rollout.name=" + name, url}));
  expect_right(home, result);
  EXPECT_FALSE(process.ended());

  // `tandem doctor` describes this server, and a job of another engine refuses it by name.
  const std::string at = "http://127.0.0.1:" + port;
  const Finished found = home.run({"doctor", "--engine", at});
  EXPECT_EQ(found.code, 0) << found.text();
  for (const std::string& part :
       {name, std::string("128 positions"), std::string("it has the routes")})
    EXPECT_NE(found.text().find(part), std::string::npos) << part << " in " << found.text();
  const std::string other = name == "vllm" ? "sglang" : "vllm";
  const Finished refused = home.run(Words{"run"} + small_job(2, {"rollout.name=" + other, url}));
  EXPECT_NE(refused.code, 0);
  EXPECT_NE(refused.text().find("its server is one of " + name), std::string::npos)
      << refused.text();
}

// The log-probabilities by which a version is proved are in no journal. After the death of a
// controller the learner tells them again.
TEST(EngineProbes, VersionsAreProvedAfterTheDeathOfAController) {
  const Home home;
  const std::string rollout = std::string(kSmallId) + "/rollout/0";
  home.up();
  const Finished submitted =
      home.run(Words{"submit"} + served_job(kServed[0]) + held(home, kEngineSteps / 2));
  ASSERT_EQ(submitted.code, 0) << submitted.text();
  ASSERT_TRUE(eventually([&] {
    return home.json({"get", "jobs", kSmallId})["step"] >= kEngineSteps / 2;
  }));
  const json controller = home.address();
  ASSERT_EQ(kill(controller["pid"].get<pid_t>(), SIGKILL), 0);
  ASSERT_TRUE(home.next_controller(controller["epoch"]));
  ASSERT_TRUE(eventually([&] { return actor(home, rollout)["state"] == "Ready"; }));
  ASSERT_EQ(kill(actor(home, rollout)["pid"].get<pid_t>(), SIGKILL), 0);
  let_go(home);
  EXPECT_EQ(home.run({"wait", kSmallId, "--for", "Succeeded"}).code, 0);
  const std::string logs = rollout_logs(home);
  EXPECT_NE(logs.find("event=engine_ready"), logs.rfind("event=engine_ready")) << "it came anew";
  EXPECT_EQ(logs.find("event=version_unproven"), std::string::npos) << logs;
  expect_right(home, home.result_of(kSmallId));
  home.down();
}

TEST(EngineOnAnotherHost, IsFedWhereTheNetworkIsTrustedAndRefusedElsewhere) {
  Home home, refusing, far;
  const auto network = Network::make(home);
  if (!network) GTEST_SKIP() << "no network namespaces here";
  for (Home* near : {&home, &refusing}) near->start_by(network->on_first());
  const std::string port = "8011";
  Process server = far.start_program(
      network->on_second() +
      Words{"env", "-u", "TANDEM_HOME", "VLLM_SERVER_DEV_MODE=1", TANDEM_FAKE_VLLM} +
      kServed[0].arguments + Words{"--host", network->second_address(), "--port", port});
  ASSERT_TRUE(server.said("Application startup complete"));
  const Words job{"rollout.name=vllm",
                  "rollout.engine.url=[http://" + network->second_address() + ":" + port + "]"};
  const Finished refused = refusing.run(Words{"run"} + small_job(2, job));
  EXPECT_NE(refused.code, 0);
  EXPECT_NE(refused.text().find("is on another host"), std::string::npos) << refused.text();
  const json result = home.train(
      kSmallId, small_job(kEngineSteps, job + Words{"rollout.engine.trusted_network=true"}));
  expect_right(home, result);
}

TEST(EngineErrors, WhatIsWrongWithAServerIsSaidWithWhatToDo) {
  const auto expect_said = [](const Words& settings, const Words& parts) {
    const Home home;
    const Finished failed =
        home.run(Words{"run"} + small_job(2, Words{"rollout.name=vllm"} + settings));
    EXPECT_NE(failed.code, 0);
    for (const std::string& part : parts)
      EXPECT_NE(failed.text().find(part), std::string::npos)
          << "expected `" << part << "` in: " << failed.text();
  };
  expect_said({"rollout.engine.command=[/no/such/vllm]"},
              {"/no/such/vllm", "rollout.engine.command"});
  expect_said(
      {"rollout.name=sglang", "rollout.engine.url=[http://127.0.0.1:9]", "rollout.temperature=0.7"},
      {"from before the temperature"});
  expect_said({"rollout.name=sglang", "rollout.engine.weight_transfer=tcp"},
              {"does not lead to `rollout.name: sglang`"});
  expect_said({"rollout.engine.weight_transfer=nccl"}, {"sends from a GPU of the rollout"});
  expect_said({"rollout.engine.weight_transfer=disk",
               "rollout.engine.command=" + json{TANDEM_FAKE_VLLM}.dump()},
              {"keeps its old output head", "use `tcp`"});
  expect_said({"rollout.name=tensorrt_llm"}, {"computes on GPUs alone", "rollout.name: vllm"});
  expect_said({"rollout.name=tensorrt_llm", "rollout.engine.command=[x]", "rollout.top_p=0.9"},
              {"from before `rollout.top_p`"});
  expect_said({"rollout.name=native", "rollout.quantization=fp8"},
              {"the native engine does not use `rollout.quantization`"});
  expect_said({"rollout.name=native", "rollout.dtype=float16"},
              {"the native engine does not use `rollout.dtype`"});
  expect_said({"rollout.dtype=int8"}, {"expects one of float32, bfloat16, float16"});
  expect_said({"pools.rollout.gpus_per_actor=1", "rollout.tensor_model_parallel_size=2"},
              {"computes on 2 GPUs", "set it to 2"});
  expect_said({"rollout.engine.url=[http://127.0.0.1:9]", "rollout.enforce_eager=true"},
              {"is for a server that Tandem starts"});
  expect_said({"async.schedule=fixed_lag"}, {"repeats a run bit for bit"});
  expect_said({"rollout.engine.url=[http://127.0.0.1:9]", "rollout.replicas=2"},
              {"names fewer servers (1) than there are rollouts (2)"});
}

// One job file, and only `rollout.name` differs: what was left to each engine is its own.
TEST(EngineNames, OneJobFileIsForAllOfThem) {
  const Home home;
  const Words all{"rollout.engine.command=[/opt/engine]", "rollout.dtype=float32",
                  "rollout.engine_kwargs.vllm={swap_space: 4}",
                  "rollout.engine_kwargs.sglang={attention_backend: fa3}",
                  "rollout.engine_kwargs.tensorrt_llm={moe_expert_parallel_size: 1}"};
  for (const char* name : {"native", "vllm", "sglang", "tensorrt_llm"}) {
    const Finished dry = home.run(Words{"run", "--dry-run"} +
                                  small_job(2, all + Words{std::string("rollout.name=") + name}));
    EXPECT_EQ(dry.code, 0) << dry.text();
    EXPECT_NE(dry.text().find(std::string("name: ") + name), std::string::npos) << dry.text();
  }
}

}  // namespace
}  // namespace tandem::e2e
