// An engine whose server is of another process: fake_vllm, fake_sglang or fake_trtllm.py, which
// have a model of ours inside, so that their log-probabilities are the learner's to the bit.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "actors/model/probe.h"
#include "actors/rollout/external/served_engine.h"
#include "actors/rollout/external/served_server.h"
#include "runtime/base/secret.h"
#include "tests/actors/rollout/engine_builder.h"
#include "tests/runtime/collective/nccl_rank.h"

namespace tandem::rollout {

using namespace std::chrono_literals;

inline constexpr Duration kPatience = 60s;  // ends a hang, measures nothing

// The address of a real server, with which scripts/real_engines runs the tests of
// EngineConformance; null: each test starts a fake.
inline const char* const kRealServer = std::getenv("TANDEM_ENGINE_URL");
inline constexpr float kRealTolerance = 1e-3f;  // of other arithmetic in f32

// A kind of server and a way by which weights reach it.
struct Peer {
  const char* name;
  const char* fake;
  const char* max_num_seqs;  // its argument for the sequences that it computes at a time
  // With which completions follow from their seeds; null: they always do.
  const char* repeats;
  EngineName engine;
  WeightTransfer transfer;
  bool packed = true;
  const char* below = nullptr;  // the program below the fake
};
inline constexpr Peer kPeers[] = {
    {"vllm_tcp", TANDEM_FAKE_VLLM, "--max-num-seqs", nullptr, EngineName::kVllm,
     WeightTransfer::kTcp},
    {"vllm_disk", TANDEM_FAKE_VLLM, "--max-num-seqs", nullptr, EngineName::kVllm,
     WeightTransfer::kDisk},
    {"vllm_nccl_packed", TANDEM_FAKE_VLLM, "--max-num-seqs", nullptr, EngineName::kVllm,
     WeightTransfer::kNccl},
    {"vllm_nccl_unpacked", TANDEM_FAKE_VLLM, "--max-num-seqs", nullptr, EngineName::kVllm,
     WeightTransfer::kNccl, false},
    {"trtllm_tcp", TANDEM_FAKE_TRTLLM, "--max-num-seqs", nullptr, EngineName::kTensorrtLlm,
     WeightTransfer::kTcp, true, TANDEM_FAKE_VLLM},
    {"sglang_nccl", TANDEM_FAKE_SGLANG, "--max-running-requests",
     "--enable-deterministic-inference", EngineName::kSglang, WeightTransfer::kNccl, false},
    {"sglang_disk", TANDEM_FAKE_SGLANG, "--max-running-requests",
     "--enable-deterministic-inference", EngineName::kSglang, WeightTransfer::kDisk},
};
inline const auto kPeerName = [](const auto& test) { return std::string(test.param.name); };

// For PrintTo of the framework.
inline std::ostream& operator<<(std::ostream& out, const Peer& peer) { return out << peer.name; }

// Whether completions follow from their seeds: a real server may not have been started so.
inline bool repeats(const Peer& peer) { return !kRealServer || !peer.repeats; }

// NCCL in this process, by the fake library.
struct OurNccl {
  collective::FakeNccl fake = collective::open_fake_nccl();
  collective::NcclThread thread;
  collective::NcclProcess process{.api = fake.api, .streams = fake.streams, .thread = &thread};
};
inline const collective::NcclProcess* our_nccl() {
  static OurNccl only;
  return &only.process;
}

inline ServerSpec server_spec(const Peer& peer, const TinyModel& model,
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

inline constexpr int kVersions = 8;

// The learner's log-probabilities of the probe.
inline std::vector<float> probe_of(const TinyModel& model, PolicyVersion version) {
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

}  // namespace tandem::rollout
