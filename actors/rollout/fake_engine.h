// An engine without a model, for fleets in virtual time: each step gives every running sequence one
// token and says how long that took. Tokens, lengths and texts follow from the seeds (EN-4).
// Starts, updates and pinned versions obey the same WorkQueue as those of the native engine.
//
// A trajectory's text is the decimal of its seed, so that a fake reward can be a function of the
// text.
//
// Threads: one at a time. The engine never reads a clock: step() and finish_update() return how
// much virtual time they took, and the caller waits for as long.
#pragma once

#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "actors/rollout/answers.h"
#include "actors/rollout/engine.h"
#include "actors/rollout/sequence_times.h"
#include "actors/rollout/work_queue.h"

namespace tandem::rollout {

struct FakeEngineConfig {
  EngineConfig engine;            // max_num_seqs, max_response_length, partial_rollout are used
  Duration step_time{};           // the time of a step with nothing running in it
  Duration sequence_time{};       // added for each running sequence
  Duration install_time{};        // the time that finish_update takes
  std::int32_t tokens_min = 1;    // lengths are uniform in [tokens_min, tokens_max], but
  std::int32_t tokens_max = 16;   // one in `long_every` is max_response_length, truncated
  std::int32_t long_every = 0;    // 0: none
  std::string unservable_prompt;  // this prompt is refused as too long; empty: none is
  std::string failing_prompt;     // this prompt fails the engine (EN-5); empty: none does
  std::function<void()> hang;     // called by that prompt in place of a failure; may be empty
  bool installs_in_place = false;
  int install_steps = 0;  // in which the engine is installing() before it has a version
};

// Obeys EN-1 to EN-5. A "weights" arena is ignored, so installing a version changes numbers alone.
class FakeEngine final : public Engine {
 public:
  explicit FakeEngine(FakeEngineConfig config);

  void submit(messages::GroupWork work) override;
  void submit(messages::Evaluate evaluation) override;
  void cancel(std::span<const GroupId> groups) override;
  void cancel_evaluations() override;
  void cancel_all() override;
  bool can_step() const override;
  Duration step() override;
  std::vector<EngineEvent> poll() override;
  EngineStats stats() const override;
  TokenCounts tokens() const override {
    return {counters_.generation_tokens, counters_.prompt_tokens};
  }
  std::optional<PolicyVersion> version() const override { return installed_; }
  std::optional<PolicyVersion> wants(const VersionOffer& offer) override {
    return queue_.wants(offer);
  }
  bool installs_in_place() const override { return config_.installs_in_place; }
  Result<std::span<std::byte>> weight_sink() override { return std::span<std::byte>{}; }
  void begin_update(PolicyVersion version) override { queue_.begin_update(version); }
  bool may_finish_update() const override { return queue_.may_finish_update(); }
  Duration finish_update(std::span<const std::byte> arena) override;
  bool installing() const override { return install_steps_left_ > 0; }
  void version_gone(PolicyVersion version) override;

 private:
  bool fails_by(const std::string& prompt) const;
  void fail();
  void cancel_those(const std::function<bool(const Request&)>& which);
  // A request that has started; its n trajectories get a token each per step.
  struct Running {
    Request request;
    std::vector<messages::Trajectory> trajectories;
    std::vector<SequenceTimes> times;   // one per trajectory
    std::vector<std::int32_t> lengths;  // tokens after which each trajectory ends
  };
  void start(Request request);
  void finish(Running& group);
  bool extend(Running& group);  // by one token each; true when all are complete
  std::int64_t sequences_running() const;

  const FakeEngineConfig config_;
  WorkQueue queue_;
  Answers answers_;
  std::deque<Running> running_;
  std::optional<PolicyVersion> installed_;
  int install_steps_left_ = 0;
  EngineStats counters_;
  Time now_;  // the engine's own clock: the sum of the times that steps and updates took
};

}  // namespace tandem::rollout
