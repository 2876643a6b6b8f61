// An engine whose model runs in a server: vLLM and its like, started by this rollout or attached to
// by its address. The rollout actor does not know the difference. Requests are HTTP calls that are
// answered later; a step takes the answers that have come and sends what may start.
//
// While requests run, their tokens are counted by the server's own figures, so that a long
// completion shows progress before it is whole.
//
// EN-1 to EN-5 hold with these bounds. EN-4: each completion has a seed of its own, and the server
// decides how far its tokens follow from it. EN-5: an answer that does not fit (served_answer.h) is
// asked for again, and the engine fails where that does not help. A server that ends, or whose
// weights cannot be updated, fails the engine; the rollout is then started anew.
//
//   EV-1  An answer is a sample once: calls that were cancelled or asked again are not heard.
//   EV-2  Nothing is sent while weights are pushed, and a version is told of only after the server
//         has gone on with it (WU-2).
//   EV-3  A call has a deadline. One that fails is asked again after a pause, at most kAsksMax
//         times in all, also where the server answers garbage or another request's completions.
//   EV-4  No token of a version is answered before the server has proved by a probe that it
//         computes with that version (probe_check.h), where the learner has told what the probe
//         gives.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "actors/model/model_config.h"
#include "actors/model/tokenizer.h"
#include "actors/rollout/engine.h"
#include "actors/rollout/external/dialect.h"
#include "runtime/base/clock.h"
#include "runtime/device/manifest.h"

namespace tandem::rollout {

inline constexpr int kAsksMax = 4;

// What an engine needs of its server. `ask` may be called from the engine's thread and calls `done`
// once, on any thread, also after the engine has gone.
struct ServerLink {
  using Done = std::function<void(Result<http::HttpResponse>)>;
  // Offers a version's tensors; the server is told by the calls of a push where to take them from.
  // First: a server that ends with the link does so before what it reads is freed.
  std::shared_ptr<WeightSource> weights;
  std::function<void(const ServerCall& call, Duration timeout, Done done)> ask;
  // Why the server has ended, where this rollout started it; nothing while it runs.
  std::function<std::optional<std::string>()> ended;
};

struct ServedConfig {
  EngineConfig engine;
  const Dialect* dialect = nullptr;
  // As ServedVersions has it. The prefix differs for each incarnation
  // of each rollout, so that weights of somebody else are noticed.
  std::string label_prefix;
  device::Manifest manifest;                       // of published versions
  WeightTransfer transfer = WeightTransfer::kTcp;  // one of transfers_to(), as the link's source
  Duration request_timeout = std::chrono::seconds(600);
  Duration update_timeout = std::chrono::seconds(600);  // of each call of an update
  // Of the tensors that one call of an update names, where a dialect sends by parts; a larger
  // tensor has a call alone.
  std::size_t call_bytes = std::size_t{512} << 20;
  double logprob_tolerance = 0.02;                   // as ProbeCheck has it
  Duration metrics_every = std::chrono::seconds(1);  // between looks at the server's figures
};

struct ServedModel {
  model::ModelConfig config;
  std::shared_ptr<const model::Tokenizer> tokenizer;
};

class ServedEngine final : public Engine {
 public:
  // Fails for rules of sampling that cannot hold (make_stop_rules).
  static Result<std::unique_ptr<ServedEngine>> make(ServedModel model, ServedConfig config,
                                                    ServerLink server,
                                                    std::function<Time()> clock = steady_now);
  ~ServedEngine() override;

  void submit(messages::GroupWork work) override;
  void submit(messages::Evaluate evaluation) override;
  void cancel(std::span<const GroupId> groups) override;
  void cancel_evaluations() override;
  void cancel_all() override;
  bool can_step() const override;
  Duration step() override;
  std::vector<EngineEvent> poll() override;
  EngineStats stats() const override;
  TokenCounts tokens() const override;
  std::optional<PolicyVersion> version() const override;
  std::optional<PolicyVersion> wants(const VersionOffer& offer) override;
  // Each version is copied here: a push takes too long to keep a publisher's place in use.
  bool installs_in_place() const override { return false; }
  Result<std::span<std::byte>> weight_sink() override;  // one arena, in the host's memory
  void begin_update(PolicyVersion version) override;
  bool may_finish_update() const override;
  Duration finish_update(std::span<const std::byte> arena) override;
  bool installing() const override;
  void expect(PolicyVersion version, std::vector<float> probe) override;
  void version_gone(PolicyVersion version) override;

 private:
  struct State;
  explicit ServedEngine(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tandem::rollout
