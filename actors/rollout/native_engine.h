// The engine that computes: continuous batching over paged keys and values, on one device.
//
// A step computes what scheduler/batch plans for the running and waiting sequences. This class
// applies the plan, samples tokens, and follows each sequence to its end. A group's prompt is
// computed by its first sequence alone; the others then start from the same pages, and copy only
// the partly filled last one when they write to it.
//
// Invariants (besides EN-1 … EN-5)
//   NE-1  A trajectory's tokens, log-probabilities and text do not depend on what it is batched
//         with, on how its prompt is cut into chunks, on whether it was preempted, or on whether
//         steps are queued before the ones before them are known (async_scheduling).
//   NE-2  Log-probabilities equal those of the learner's training forward bit for bit, where one
//         version made a trajectory whole (DE-2).
//         (On a GPU with Rows::kFastest, NE-1 and NE-2 hold up to rounding.)
//   NE-3  When nothing runs or waits, every page is free or holds a cached prefix.
//   NE-4  A page shared by sequences is never written: its writer copies it first.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "actors/model/model_config.h"
#include "actors/model/tokenizer.h"
#include "actors/rollout/engine.h"
#include "runtime/base/clock.h"
#include "runtime/base/result.h"
#include "runtime/device/stream.h"

namespace tandem::rollout {

struct NativeModel {
  model::ModelConfig config;
  std::shared_ptr<const model::Tokenizer> tokenizer;
};

class NativeEngine final : public Engine {
 public:
  // Fails (kInvalid, kInfeasible, or an error about memory) if the model has too few positions for
  // prompt and response, a stop token does not exist, or the memory cannot hold one sequence of the
  // greatest length. The engine computes on the stream's device, and the objects that the stream
  // names must outlive the engine. `clock` is read once or twice in a step, for stats().latencies
  // alone.
  static Result<std::unique_ptr<NativeEngine>> make(NativeModel model, const EngineConfig& config,
                                                    device::Stream stream,
                                                    std::function<Time()> clock = steady_now);
  ~NativeEngine() override;

  // The bytes that make() allocates on the device with this configuration besides the pages:
  // weights and workspace, and the sink where it is the device's. On a CPU the sink, if a version
  // is ever copied into it, takes another arena of published_manifest(model).
  static std::size_t bytes_beside_pages(const model::ModelConfig& model, const EngineConfig& config,
                                        device::DeviceKind device);
  // The number of pages that make() allocates: as many as config.kv_memory_bytes holds, but no more
  // than could ever be in use. With fewer than pages_needed() pages make() fails.
  static std::int32_t pages_taken(const model::ModelConfig& model, const EngineConfig& config);
  static std::int32_t pages_needed(const EngineConfig& config);

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
  // A CPU packs a version from wherever it lies. A GPU copies from the sink, which is pinned host
  // memory or the GPU's own.
  bool installs_in_place() const override;
  // One arena of published_manifest(config). On a GPU make() allocates it.
  Result<std::span<std::byte>> weight_sink() override;
  void begin_update(PolicyVersion version) override;
  bool may_finish_update() const override;
  Duration finish_update(std::span<const std::byte> arena) override;
  void version_gone(PolicyVersion version) override;

  std::int64_t graphs_recorded() const;  // for tests: sizes of decode steps
  // Used by tests of NE-3: pages that no sequence reads, and all pages.
  std::int32_t pages_free() const;
  std::int32_t pages_total() const;

 private:
  struct State;
  explicit NativeEngine(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tandem::rollout
