// An engine and a server of another process: fake_vllm or fake_sglang, which have a model of ours
// inside, so that their log-probabilities are the learner's to the bit. Each fault of a server is
// one that a real one was seen to have.
//
// Tests actors/rollout/external/served_engine.h, served_server.h and the dialects.
#include "actors/rollout/external/served_engine.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <thread>

#include "actors/model/probe.h"
#include "actors/rollout/external/served_server.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/base/secret.h"
#include "runtime/http/http_server.h"
#include "tests/actors/rollout/engine_builder.h"
#include "tests/runtime/collective/nccl_rank.h"

namespace tandem::rollout {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr Duration kPatience = 60s;  // ends a hang, measures nothing

// The address of a real server, with which scripts/real_engines runs the tests of
// EngineConformance; null: each test starts a fake.
const char* const kRealServer = std::getenv("TANDEM_ENGINE_URL");
constexpr float kRealTolerance = 1e-3f;  // of other arithmetic in f32

// A kind of server and a way by which weights reach it.
struct Peer {
  const char* name;
  EngineName engine;
  WeightTransfer transfer;
  const char* fake;
  const char* max_num_seqs;  // its argument for the sequences that it computes at a time
  // With which completions follow from their seeds; null: they always do.
  const char* repeats;
  bool packed = true;
  const char* below = nullptr;  // the program below the fake
};
constexpr Peer kPeers[] = {
    {"vllm_tcp", EngineName::kVllm, WeightTransfer::kTcp, TANDEM_FAKE_VLLM, "--max-num-seqs",
     nullptr},
    {"vllm_disk", EngineName::kVllm, WeightTransfer::kDisk, TANDEM_FAKE_VLLM, "--max-num-seqs",
     nullptr},
    {"vllm_nccl_packed", EngineName::kVllm, WeightTransfer::kNccl, TANDEM_FAKE_VLLM,
     "--max-num-seqs", nullptr},
    {"vllm_nccl_unpacked", EngineName::kVllm, WeightTransfer::kNccl, TANDEM_FAKE_VLLM,
     "--max-num-seqs", nullptr, false},
    {"trtllm_tcp", EngineName::kTensorrtLlm, WeightTransfer::kTcp, TANDEM_FAKE_TRTLLM,
     "--max-num-seqs", nullptr, true, TANDEM_FAKE_VLLM},
    {"sglang_nccl", EngineName::kSglang, WeightTransfer::kNccl, TANDEM_FAKE_SGLANG,
     "--max-running-requests", "--enable-deterministic-inference", false},
    {"sglang_disk", EngineName::kSglang, WeightTransfer::kDisk, TANDEM_FAKE_SGLANG,
     "--max-running-requests", "--enable-deterministic-inference"},
};
const auto kPeerName = [](const auto& test) { return std::string(test.param.name); };

// For PrintTo of the framework.
std::ostream& operator<<(std::ostream& out, const Peer& peer) { return out << peer.name; }

// Whether completions follow from their seeds: a real server may not have been started so.
bool repeats(const Peer& peer) { return !kRealServer || !peer.repeats; }

// NCCL in this process, by the fake library.
struct OurNccl {
  collective::FakeNccl fake = collective::open_fake_nccl();
  collective::NcclThread thread;
  collective::NcclProcess process{.api = fake.api, .streams = fake.streams, .thread = &thread};
};
const collective::NcclProcess* our_nccl() {
  static OurNccl only;
  return &only.process;
}

ServerSpec server_spec(const Peer& peer, const TinyModel& model,
                       std::vector<std::string> args = {}) {
  if (peer.repeats) args.push_back(peer.repeats);
  const std::string own = testing::TempDir() + "/engine-" + std::to_string(getpid());
  return {.dialect = &dialect_of(peer.engine),
          .url = kRealServer ? kRealServer : "",
          .command = peer.below ? std::vector<std::string>{peer.fake, peer.below}
                                : std::vector<std::string>{peer.fake},
          .args = std::move(args),
          .env = {{"TANDEM_FAKE_NCCL_DEVICE", "1"}},  // ours is GPU 0
          .launch = {.model = TANDEM_SOURCE_DIR "/configs/models/arithmetic",
                     .dtype = "float32",
                     .name = "us",
                     .transfer = peer.transfer,
                     .positions_max = 128,
                     .max_num_seqs = 32,
                     .max_num_batched_tokens = 256,
                     .on_cpu = true},
          .plugin_folder = own,
          .startup_timeout = kPatience,
          .weights = {.manifest = model.weights(kV0).manifest(),
                      .folder = own + "-" + random_secret().substr(0, 8),
                      .nccl = peer.transfer == WeightTransfer::kNccl ? our_nccl() : nullptr,
                      .meeting = dialect_of(peer.engine).meeting,
                      .name = "us",
                      .packed = peer.packed}};
}

constexpr int kVersions = 8;

// The learner's log-probabilities of the probe.
std::vector<float> probe_of(const TinyModel& model, PolicyVersion version) {
  const EngineConfig config = tiny_engine_config();
  messages::GroupPayload payload;
  messages::Trajectory trajectory;
  trajectory.tokens = model::probe_tokens(model.config().vocab_size,
                                          config.max_prompt_length + config.max_response_length);
  payload.prompt_tokens = {trajectory.tokens.front()};
  trajectory.tokens.erase(trajectory.tokens.begin());
  return learner_logprobs({}, model, version, payload, trajectory, 1.0f);
}

struct Served {
  const Peer& peer;
  TinyModel model{kVersions};
  EngineConfig config = tiny_engine_config();
  Duration timeout = kPatience;
  std::unique_ptr<ServedEngine> engine;
  Payloads payloads;
  std::vector<EvaluationDone> evaluated;
  std::optional<Error> failure;
  int unservable = 0;
  bool probes = true;

  explicit Served(const Peer& with, std::vector<std::string> args = {}, bool installed = true,
                  Duration call_timeout = kPatience,
                  std::size_t call_bytes = ServedConfig{}.call_bytes)
      : peer(with), timeout(call_timeout) {
    ServerSpec spec = server_spec(peer, model, std::move(args));
    spec.weights.timeout = timeout;
    auto link = open_server(std::move(spec));
    EXPECT_TRUE(link) << link.error().message;
    auto made = ServedEngine::make({model.config(), model.shared_tokenizer()},
                                   {.engine = config,
                                    .dialect = &dialect_of(peer.engine),
                                    .label_prefix = "us-" + random_secret().substr(0, 8),
                                    .manifest = model.weights(kV0).manifest(),
                                    .transfer = peer.transfer,
                                    .request_timeout = timeout,
                                    .update_timeout = timeout,
                                    .call_bytes = call_bytes,
                                    .metrics_every = 0s},
                                   *std::move(link));
    EXPECT_TRUE(made);
    engine = *std::move(made);
    if (installed) update(kV0);
  }

  void gather() {
    for (EngineEvent& event : engine->poll()) {
      if (auto* payload = std::get_if<messages::GroupPayload>(&event))
        EXPECT_TRUE(payloads.emplace(payload->group, std::move(*payload)).second) << "EV-1, EN-2";
      else if (auto* done = std::get_if<EvaluationDone>(&event))
        evaluated.push_back(std::move(*done));
      else if (auto* failed = std::get_if<EngineFailed>(&event))
        failure = failed->error;
      else
        ++unservable;
    }
  }
  // Steps until the condition holds, the engine fails, or there is nothing left to do.
  void run_until(const std::function<bool()>& condition) {
    const Time deadline = steady_now() + kPatience;
    while (!condition() && !failure && engine->can_step()) {
      ASSERT_LT(steady_now(), deadline) << "it hangs";
      engine->step();
      gather();
      std::this_thread::yield();
    }
    gather();
  }
  void run() {
    run_until([] { return false; });
  }
  void update(PolicyVersion version) {
    engine->begin_update(version);
    run_until([&] { return engine->may_finish_update(); });
    ASSERT_TRUE(engine->may_finish_update());
    if (probes) engine->expect(version, probe_of(model, version));
    engine->finish_update(model.weights(version).bytes());
    EXPECT_NE(engine->version(), version) << "EV-2: it is pushed in steps";
    run_until([&] { return !engine->installing(); });
    if (failure) return;
    EXPECT_EQ(engine->version(), version);
  }
  void submit_all() {
    for (std::size_t i = 0; i < kPrompts.size(); ++i) engine->submit(group_work(i, kPrompts[i]));
  }
  static void expect_logprobs(const std::vector<float>& served, const std::vector<float>& learner) {
    if (!kRealServer) {
      EXPECT_EQ(served, learner);  // to the bit
      return;
    }
    ASSERT_EQ(served.size(), learner.size());
    for (std::size_t i = 0; i < served.size(); ++i)
      EXPECT_NEAR(served[i], learner[i], kRealTolerance) << "token " << i;
  }
  // Every completion that one version made has the learner's log-probabilities of it.
  void expect_right() const {
    EXPECT_EQ(payloads.size(), kPrompts.size());
    std::size_t tokens = 0;
    for (const auto& [id, payload] : payloads) {
      EXPECT_EQ(payload.prompt, kPrompts[id.value]);
      EXPECT_EQ(payload.trajectories.size(), 4u);
      for (const messages::Trajectory& t : payload.trajectories) {
        if (t.versions.size() != 1 || t.oldest != t.versions[0].version) continue;
        tokens += t.tokens.size();
        expect_logprobs(t.logprobs,
                        learner_logprobs({}, model, t.versions[0].version, payload, t, 1.0f));
        EXPECT_EQ(t.text, model.tokenizer().decode(t.tokens, model::SpecialTokens::kSkip));
      }
    }
    EXPECT_GT(tokens, 20u) << "the comparison needs something to compare";
  }
};

class EngineConformance : public ::testing::TestWithParam<Peer> {};
INSTANTIATE_TEST_SUITE_P(Peers, EngineConformance, ::testing::ValuesIn(kPeers), kPeerName);

TEST_P(EngineConformance, SamplesWithTheLearnersLogprobsWhateverVersionIsInstalled) {
  Served served(GetParam());
  served.submit_all();
  served.run();
  served.expect_right();
  EXPECT_FALSE(served.failure);
  EXPECT_EQ(served.engine->stats().sequences_running, 0);
  const messages::Latencies latencies = served.engine->stats().latencies;
  for (const messages::Histogram* histogram : {&latencies.queue, &latencies.request})
    EXPECT_EQ(std::accumulate(histogram->counts.begin(), histogram->counts.end(), 0u),
              4 * kPrompts.size());
  EXPECT_GE(latencies.request.sum, latencies.queue.sum);
  const Payloads first = std::move(served.payloads);
  served.payloads.clear();
  served.update(kV2);
  served.submit_all();
  served.run();
  served.expect_right();
  EXPECT_EQ(served.payloads.at(GroupId{0}).trajectories[0].versions[0].version, kV2);
  EXPECT_NE(served.payloads.at(GroupId{2}).trajectories[0].tokens,
            first.at(GroupId{2}).trajectories[0].tokens);
}

TEST_P(EngineConformance, CompletionsOfAGroupDifferAndFollowFromItsSeed) {
  Served served(GetParam());
  served.submit_all();
  served.run();
  Served again(GetParam());
  again.submit_all();
  again.run();
  bool differ = false;
  for (const auto& [id, payload] : served.payloads) {
    const messages::GroupPayload& other = again.payloads.at(id);
    if (!kRealServer) expect_same(payload, other, "group " + std::to_string(id.value));
    for (std::size_t i = 0; repeats(GetParam()) && i < payload.trajectories.size(); ++i)
      EXPECT_EQ(payload.trajectories[i].tokens, other.trajectories[i].tokens);
    differ = differ || payload.trajectories[0].tokens != payload.trajectories[1].tokens;
  }
  EXPECT_TRUE(differ);
}

TEST_P(EngineConformance, AnUpdateGoesIntoWhatRuns_EN3_EV2) {
  // The server runs six sequences at a time, so that others run when the first group is whole.
  Served served(GetParam(), {GetParam().max_num_seqs, "6"});
  bool mixed = false;
  for (int version = 1; version < kVersions && !mixed; ++version) {
    served.payloads.clear();
    served.submit_all();
    served.run_until([&] { return !served.payloads.empty(); });
    served.update(PolicyVersion{version});
    served.run();
    for (const auto& [id, payload] : served.payloads)
      for (const messages::Trajectory& t : payload.trajectories) {
        mixed = mixed || t.versions.size() > 1;
        EXPECT_LE(t.oldest, t.versions.front().version) << "EN-3";
      }
  }
  EXPECT_TRUE(mixed) << "no update met a request that ran";
  EXPECT_FALSE(served.failure);
}

TEST_P(EngineConformance, EvaluatesGreedilyAndBySampling) {
  Served served(GetParam());
  const messages::EvaluationSampling sampling{.n = 2, .temperature = 1, .greedy = true};
  messages::Evaluate evaluation{
      .evaluation = messages::EvaluationId{1}, .version = kV0, .sampling = sampling};
  for (std::int32_t i = 0; i < 3; ++i)
    evaluation.prompts.push_back({.index = i, .prompt = kPrompts[0], .seed = 5});
  served.engine->submit(std::move(evaluation));
  served.run();
  ASSERT_EQ(served.evaluated.size(), 1u);
  ASSERT_EQ(served.evaluated[0].completions.size(), 9u);
  std::map<std::int32_t, std::vector<std::string>> by_sample;
  for (const auto& completion : served.evaluated[0].completions)
    by_sample[completion.sample].push_back(completion.text);
  for (const auto& [sample, texts] : by_sample)
    if (repeats(GetParam()) || is_greedy(sampling, sample)) {
      EXPECT_EQ(texts, std::vector<std::string>(3, texts[0])) << "one seed, one text";
    }
}

TEST_P(EngineConformance, AnEvaluationOfTheVersionBeforeMayComeWhileItIsReplaced) {
  Served served(GetParam());
  served.engine->begin_update(kV1);
  served.engine->finish_update(served.model.weights(kV1).bytes());
  served.engine->submit(messages::Evaluate{.evaluation = messages::EvaluationId{1},
                                           .version = kV0,
                                           .prompts = {{.index = 0, .prompt = kPrompts[0]}}});
  served.run_until([&] { return !served.engine->installing(); });
  EXPECT_EQ(served.engine->version(), kV1);
  EXPECT_EQ(served.engine->wants({.newest = kV1, .oldest_retained = kV0}), kV0);
  served.update(kV0);
  served.run();
  EXPECT_EQ(served.evaluated.size(), 1u);
}

TEST_P(EngineConformance, CountsTokensBeforeTheirCompletionsAreWhole) {
  Served served(GetParam(), {GetParam().max_num_seqs, "1", "--fault", "late-answers"});
  served.submit_all();
  bool early = false;
  served.run_until([&] {
    std::uint64_t whole = 0;
    for (const auto& [id, payload] : served.payloads)
      for (const messages::Trajectory& t : payload.trajectories) whole += t.tokens.size();
    early = early || served.engine->tokens().generation_tokens > whole;
    return false;
  });
  EXPECT_TRUE(early) << "a lease is extended by tokens";
  served.expect_right();
}

TEST_P(EngineConformance, APromptThatIsTooLongIsRefusedAlone) {
  Served served(GetParam());
  served.engine->submit(group_work(9, std::string(100, '1')));
  served.submit_all();
  served.run();
  EXPECT_EQ(served.unservable, 1);
  served.expect_right();
}

TEST_P(EngineConformance, WhatIsCancelledIsNotHeard_EV1) {
  Served served(GetParam());
  served.submit_all();
  served.run_until([&] { return served.engine->stats().sequences_running > 0; });
  const std::vector<GroupId> some{GroupId{1}, GroupId{3}};
  served.engine->cancel(some);
  served.run();
  for (const GroupId group : some) EXPECT_FALSE(served.payloads.contains(group));
  for (const auto& [id, payload] : served.payloads) EXPECT_EQ(payload.trajectories.size(), 4u);
  served.engine->submit(group_work(1, kPrompts[1]));
  served.run();
  EXPECT_TRUE(served.payloads.contains(GroupId{1}));
  served.engine->cancel_all();
  EXPECT_FALSE(served.engine->can_step());
}

constexpr const char* kAnswerFaults[] = {"error",   "garbage",       "other-answer",
                                         "logprob", "foreign-label", "stall"};

// Faults that any kind of server may have.
class Faulty : public ::testing::TestWithParam<Peer> {};
INSTANTIATE_TEST_SUITE_P(Peers, Faulty, ::testing::ValuesIn(kPeers), kPeerName);

TEST_P(Faulty, ARequestThatFailsIsAskedAgain_EV3) {
  for (const std::string fault : kAnswerFaults) {
    SCOPED_TRACE(fault);
    Served served(GetParam(), {"--fault", fault, "--fault-at", "2"}, true,
                  fault == "stall" ? 2s : kPatience);
    served.submit_all();
    served.run();
    EXPECT_FALSE(served.failure) << served.failure->message;
    served.expect_right();
  }
}

TEST(ServedEngine, AServerThatFailsARequestAgainAndAgainFailsTheEngine_EV3) {
  TinyModel model;
  // A server that has all routes and scores probes, and answers all else with nothing.
  auto server = http::HttpServer::listen({}, {}, [](const http::HttpRequest& request) {
    const nlohmann::json asked = parse_json(request.body);
    if (!find_path(asked, "sampling_params.prompt_logprobs"))
      return http::HttpResponse{.body = request.method == "POST" ? "{}" : ""};
    nlohmann::json scores{nullptr};
    for (std::size_t i = 1; i < asked["token_ids"].size(); ++i)
      scores.push_back({{asked["token_ids"][i].dump(), {{"logprob", -1}}}});
    return http::HttpResponse{.body = dump_json({{"prompt_logprobs", scores}})};
  });
  ASSERT_TRUE(server);
  ServerSpec spec = server_spec(kPeers[0], model);
  spec.url = "http://" + to_string((*server)->endpoint());
  auto link = open_server(std::move(spec));
  ASSERT_TRUE(link) << link.error().message;
  Time now = steady_now();
  auto engine = *ServedEngine::make({model.config(), model.shared_tokenizer()},
                                    {.engine = tiny_engine_config(),
                                     .dialect = &vllm_dialect(),
                                     .label_prefix = "us",
                                     .manifest = model.weights(kV0).manifest()},
                                    *std::move(link), [&now] { return now; });
  engine->begin_update(kV0);
  engine->finish_update(model.weights(kV0).bytes());
  std::vector<EngineEvent> events;
  engine->submit(group_work(1, kPrompts[0]));
  const Time deadline = steady_now() + kPatience;
  while (events.empty() && steady_now() < deadline) {
    engine->step();
    now = now + 1s;  // pauses between asks pass at once
    events = engine->poll();
    std::this_thread::yield();
  }
  ASSERT_EQ(events.size(), 1u);
  const auto* failed = std::get_if<EngineFailed>(&events[0]);
  ASSERT_NE(failed, nullptr);
  EXPECT_EQ(failed->error.code, ErrorCode::kFailed) << "another server may do better";
  EXPECT_NE(failed->error.message.find("4 times"), std::string::npos) << failed->error.message;
  EXPECT_NE(failed->error.message.find("request_id"), std::string::npos) << failed->error.message;
}

TEST_P(Faulty, AServerThatDiesFailsTheEngineWithItsLastWords) {
  Served served(GetParam(), {"--fault", "die", "--fault-at", "2"});
  served.submit_all();
  served.run();
  ASSERT_TRUE(served.failure);
  for (const char* part : {"exited with code 1", "its last lines: ", ": error: "})
    EXPECT_NE(served.failure->message.find(part), std::string::npos) << served.failure->message;
  EXPECT_FALSE(served.engine->can_step());
}

TEST_P(Faulty, ATransferThatBreaksOffIsMadeOnceMore_WU1) {
  Served served(GetParam(), {"--fault", "break-update"});
  EXPECT_FALSE(served.failure);
  served.submit_all();
  served.run();
  EXPECT_FALSE(served.failure) << served.failure->message;
  served.expect_right();
}

TEST_P(Faulty, ATransferThatIsNeverAnsweredIsMadeOnceMore) {
  Served served(GetParam(), {"--fault", "stall-update"}, true, 2s);
  served.submit_all();
  served.run();
  EXPECT_FALSE(served.failure) << served.failure->message;
  served.expect_right();
}

// Also over a connection that the version before has left, which a pause does not concern.
TEST_P(Faulty, APauseThatFailsIsMadeAgain) {
  Served served(GetParam(), {"--fault", "no-pause", "--fault-at", "2"});
  served.update(kV1);
  ASSERT_FALSE(served.failure) << served.failure->message;
  served.submit_all();
  served.run();
  EXPECT_FALSE(served.failure);
  served.expect_right();
}

// Requests that were sent before have waited for the whole of it.
TEST_P(Faulty, AnUpdateThatStallsWhileRequestsRunCostsNoSample) {
  Served served(GetParam(), {"--fault", "stall-update", "--fault-at", "2"}, true, 2s);
  served.submit_all();
  served.run_until([&] { return served.engine->stats().sequences_running > 0; });
  served.update(kV1);
  served.run();
  EXPECT_FALSE(served.failure) << served.failure->message;
  EXPECT_EQ(served.payloads.size(), kPrompts.size());
}

// Whatever the server says of an update: its log-probabilities of the probe decide.
TEST_P(Faulty, AnUpdateThatChangedNothingOrTooMuchIsMadeAgain_EV4) {
  for (const auto& [fault, at] : {std::pair("wrong-update", "1"), {"stale-update", "2"}}) {
    Served served(GetParam(), {"--fault", fault, "--fault-at", at});
    served.submit_all();
    served.run_until([&] { return served.engine->stats().sequences_running > 0; });
    served.update(kV1);
    served.run();
    EXPECT_FALSE(served.failure) << served.failure->message;
    served.payloads.clear();
    served.submit_all();
    served.run();
    served.expect_right();
  }
}

// Packed, the bytes of all come in another order, which the probe tells. One by one, sizes differ,
// and the broadcast never ends: the server hangs, and the deadline ends the engine.
TEST(ServedEngine, TensorsInAnotherOrderAreNotTakenForTheVersion_TX1_EV4) {
  for (const Peer& peer : kPeers) {
    if (peer.transfer != WeightTransfer::kNccl) continue;
    Served served(peer, {"--fault", "wrong-order"}, true, 2s);
    served.submit_all();
    served.run();
    EXPECT_EQ(served.failure.has_value(), !peer.packed);
    if (peer.packed) {
      served.expect_right();
    } else {
      EXPECT_TRUE(served.payloads.empty());
    }
  }
}

// SGLang holds the tensors of a call beside its weights.
TEST(ServedEngine, AVersionGoesInCallsOfLimitedBytes_WU1) {
  const auto peer = std::ranges::find(kPeers, std::string("sglang_nccl"), &Peer::name);
  ASSERT_NE(peer, std::end(kPeers));
  for (const std::size_t call_bytes : {std::size_t{1}, std::size_t{5000}}) {
    SCOPED_TRACE(call_bytes);
    Served broken(*peer, {"--fault", "break-update", "--fault-at", "3"}, true, kPatience,
                  call_bytes);
    broken.submit_all();
    broken.run_until([&] { return broken.engine->stats().sequences_running > 0; });
    broken.update(kV1);
    broken.run();
    EXPECT_FALSE(broken.failure) << broken.failure->message;
    broken.payloads.clear();
    broken.submit_all();
    broken.run();
    broken.expect_right();

    Served dead(*peer, {"--fault", "die-in-update", "--fault-at", "3"}, false, kPatience,
                call_bytes);
    dead.update(kV0);
    EXPECT_TRUE(dead.failure) << "its third call is of the first version";
  }
}

// The weights are new and the keys and values old: the probe alone would not tell.
TEST(ServedEngine, AnUpdateAfterWhichTheCacheIsNotEmptyIsMadeAgain_WU1) {
  Served served(std::end(kPeers)[-1], {"--fault", "unflushed", "--fault-at", "2"});
  served.submit_all();
  served.run_until([&] { return served.engine->stats().sequences_running > 0; });
  served.update(kV1);
  served.run();
  EXPECT_FALSE(served.failure) << served.failure->message;
}

TEST(ServedEngine, AServerThatNeverComputesWithAVersionFailsTheEngine_EV4) {
  Served served(kPeers[0]);
  served.engine->expect(kV1, probe_of(served.model, kV2));
  served.probes = false;
  served.update(kV1);
  ASSERT_TRUE(served.failure);
  EXPECT_NE(served.failure->message.find("(probe)"), std::string::npos) << served.failure->message;
  EXPECT_NE(served.failure->message.find("rollout.engine.logprob_tolerance"), std::string::npos)
      << served.failure->message;
}

TEST_P(Faulty, AServerThatDiesInAnUpdateFailsTheEngine) {
  Served served(GetParam(), {"--fault", "die-in-update"}, false);
  served.update(kV0);
  ASSERT_TRUE(served.failure);
  EXPECT_TRUE(served.engine->installing()) << "the version is never told of";
}

TEST(OpenServer, SaysWhatIsMissing) {
  const TinyModel model;
  const auto error_of_spec = [](ServerSpec spec) {
    const auto opened = open_server(std::move(spec));
    EXPECT_FALSE(opened);
    return opened ? Error{} : opened.error();
  };
  const auto expect_in = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  ServerSpec absent = server_spec(kPeers[0], model);
  absent.command = {"/no/such/vllm"};
  Error error = error_of_spec(absent);
  expect_in(error.message, "/no/such/vllm");
  expect_in(error.help, "rollout.engine.command");

  error = error_of_spec(server_spec(kPeers[0], model, {"--fault", "at-start"}));
  expect_in(error.message, "exited with code 1");
  expect_in(error.message, "Free memory on device");

  error = error_of_spec(server_spec(kPeers[0], model, {"--no-such-option"}));
  expect_in(error.message, "unrecognized arguments: --no-such-option");

  ServerSpec nobody = server_spec(kPeers[0], model);
  nobody.url = "http://127.0.0.1:9";  // the discard service, which nobody runs
  nobody.startup_timeout = 1s;
  error = error_of_spec(nobody);
  expect_in(error.message, "not ready in time");
  expect_in(error.help, "is the address right");

  // A server of another kind: it is healthy, and has none of the routes.
  auto other = http::HttpServer::listen({}, {}, [](const http::HttpRequest& request) {
    return http::HttpResponse{.status = request.target == "/health" ? 200 : 404};
  });
  ASSERT_TRUE(other);
  ServerSpec another = server_spec(kPeers[0], model);
  another.url = "http://" + to_string((*other)->endpoint());
  error = error_of_spec(another);
  expect_in(error.message, "/inference/v1/generate");
  expect_in(error.help, "--enable-scale-out");
}

TEST(OpenServer, EndsWithItsLastLink) {
  const TinyModel model;
  pid_t server = 0;
  {
    auto link = open_server(server_spec(kPeers[0], model));
    ASSERT_TRUE(link);
    EXPECT_FALSE(link->ended());
    for (const auto& entry : fs::directory_iterator("/proc/self/task")) {
      std::ifstream children(entry.path() / "children");
      for (pid_t child = 0; children >> child;) server = child;
    }
    ASSERT_GT(server, 0);
  }
  EXPECT_FALSE(fs::exists("/proc/" + std::to_string(server)));
}

}  // namespace
}  // namespace tandem::rollout
