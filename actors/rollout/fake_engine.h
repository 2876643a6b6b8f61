// An engine without a model, for fleets in virtual time: each step gives every running sequence one
// token and says how long that took. Tokens, lengths and texts follow from the seeds (EN-4);
// starts, updates and pinned versions obey the same WorkQueue as the native engine's.
//
// A trajectory's text is the decimal of its seed, so that a fake reward can be a function of it.
#pragma once

#include <deque>
#include <utility>
#include <vector>

#include "actors/rollout/engine.h"
#include "actors/rollout/sequence_times.h"
#include "actors/rollout/work_queue.h"

namespace tandem::actors {

struct FakeEngineConfig {
  EngineConfig engine;            // max_num_seqs, max_response_length, partial_rollout are used
  Duration step_time{};           // of a step with nothing running in it
  Duration sequence_time{};       // added for each running sequence
  Duration install_time{};        // of finish_update
  std::int32_t tokens_min = 1;    // lengths are uniform in [tokens_min, tokens_max], but
  std::int32_t tokens_max = 16;   // one in `long_every` is max_response_length, truncated
  std::int32_t long_every = 0;    // 0: none
  std::string unservable_prompt;  // this prompt is refused as too long; empty: none is
  bool installs_in_place = false;
};

class FakeEngine final : public Engine {
 public:
  explicit FakeEngine(FakeEngineConfig config);

  void submit(GroupWork work) override;
  void submit(Evaluate evaluation) override;
  void cancel(std::span<const GroupId> groups) override;
  void cancel_all() override;
  void pause(PauseMode mode) override;
  void resume() override;
  bool can_step() const override;
  Duration step() override;
  std::vector<EngineEvent> poll() override;
  EngineStats stats() const override;
  std::optional<PolicyVersion> version() const override { return queue_.version(); }
  std::optional<PolicyVersion> wants(const VersionOffer& offer) override {
    return queue_.wants(offer);
  }
  bool installs_in_place() const override { return config_.installs_in_place; }
  Result<std::span<std::byte>> weight_sink() override { return std::span<std::byte>{}; }
  void begin_update(PolicyVersion version) override { queue_.begin_update(version); }
  bool may_finish_update() const override { return queue_.may_finish_update(); }
  Duration finish_update(std::span<const std::byte> arena) override;
  void version_gone(PolicyVersion version) override;

 private:
  struct Running {
    Request request;
    std::vector<Trajectory> trajectories;
    std::vector<SequenceTimes> times;   // of each of them
    std::vector<std::int32_t> lengths;  // wanted
  };
  void start(Request request);
  void refuse(const Request& request, UnservableReason reason, std::string message);
  void finish(Running& group);
  bool extend(Running& group);  // by a token each; true when all are complete
  std::int64_t sequences_running() const;

  const FakeEngineConfig config_;
  WorkQueue queue_;
  Evaluations evaluations_;
  std::deque<Running> running_;
  std::vector<EngineEvent> events_;
  EngineStats counters_;
  Time now_;  // the time that steps and updates took: its own clock
  bool frozen_ = false;
};

}  // namespace tandem::actors
