// What generates: a rollout actor drives one Engine, step by step, and moves its results out.
//
// Two implementations: NativeEngine (native_engine.h) computes; FakeEngine (fake_engine.h) makes
// tokens up in virtual time, for whole fleets in one simulated process.
//
// Invariants, for every engine
//   EN-1  Weights change in finish_update() and nowhere else, and never while a sequence runs that
//         must end by the version it began with (see work_queue.h for which these are).
//   EN-2  Every submitted group is answered by exactly one event, unless it was cancelled; every
//         submitted evaluation likewise.
//   EN-3  A trajectory's `oldest` is at most the version of any of its tokens and of any key or
//         value that they read.
//   EN-4  The tokens of trajectory i follow from the weights, the prompt and
//         derive_seed(seed, {i}), not from what else runs.
//
// One thread at a time. No call waits for anything but its own arithmetic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "actors/messages/payload.h"
#include "actors/messages/rollout.h"
#include "kernels/ops/matmul.h"
#include "runtime/base/clock.h"
#include "runtime/base/result.h"

namespace tandem::actors {

enum class KvOnUpdate : std::uint8_t {
  kKeep,       // running sequences go on with keys and values of older versions; spans tell
  kRecompute,  // their keys and values are computed anew by the new version
};

// The rollout.* and async.* keys of a job, and what data.* bounds; names are the keys'.
struct EngineConfig {
  float temperature = 1.0f;  // > 0
  float top_p = 1.0f;
  std::int32_t top_k = 0;
  float min_p = 0.0f;
  std::int32_t min_tokens = 0;
  std::vector<std::string> stop;
  std::vector<std::int32_t> stop_token_ids;  // beside the model's eos
  std::int32_t max_prompt_length = 64;       // tokens
  std::int32_t max_response_length = 64;     // tokens
  std::int32_t max_num_seqs = 256;
  std::int32_t max_num_batched_tokens = 8192;
  std::int32_t block_size = 16;  // positions per KV page
  bool enable_prefix_caching = true;
  bool partial_rollout = true;  // false: an update waits until running sequences are done
  KvOnUpdate kv_on_update = KvOnUpdate::kKeep;
  std::size_t kv_memory_bytes = std::size_t{64} << 20;  // at most; no more than it can use
  // Decode steps of so many sequences are recorded once and replayed; smaller batches are padded to
  // the next size. Empty, or on a CPU: nothing is recorded.
  std::vector<std::int32_t> cudagraph_capture_sizes;
  // A step is planned and queued while the one before computes, for a device that computes beside
  // its host: tokens are known one step() later, and what is computed for a sequence beyond its end
  // is discarded.
  bool async_scheduling = false;
  // What a GPU's products promise of a row among others (kernels/ops/matmul.h).
  kernels::Rows products = kernels::Rows::kInvariant;
  bool weights_arrive_on_device = false;  // the sink is in the GPU's memory, not the host's
};

struct GroupUnservable {
  GroupId group;
  std::uint32_t attempt = 0;
  UnservableReason reason = UnservableReason::kPromptTooLong;
  std::string message;
};

struct EvaluationDone {
  EvaluationId evaluation;
  std::vector<EvaluationText> completions;
  std::vector<std::int32_t> unservable;
};

using EngineEvent = std::variant<GroupPayload, GroupUnservable, EvaluationDone>;

struct EngineStats {  // counters since the engine's start; the last three are of now
  std::uint64_t generation_tokens = 0;
  std::uint64_t prompt_tokens = 0;         // computed as part of a prompt, recomputation included
  std::uint64_t prefix_cache_queries = 0;  // tokens looked up
  std::uint64_t prefix_cache_hits = 0;     // tokens found
  std::uint64_t preemptions = 0;
  Latencies latencies;
  std::int32_t sequences_running = 0;
  std::int32_t sequences_waiting = 0;
  double kv_cache_usage = 0;  // 0…1
};

enum class PauseMode : std::uint8_t {
  kAbort,  // cancel everything
  kWait,   // start nothing more; what runs goes on
  kKeep,   // freeze: step() does nothing
};

// Which versions a publisher holds.
struct VersionOffer {
  PolicyVersion newest;
  PolicyVersion oldest_retained;
};

class Engine {
 public:
  virtual ~Engine() = default;

  // Earliest `due` first; evaluations before everything.
  virtual void submit(GroupWork work) = 0;
  virtual void submit(Evaluate evaluation) = 0;
  virtual void cancel(std::span<const GroupId> groups) = 0;  // unknown ones are ignored
  virtual void cancel_all() = 0;                             // evaluations as well
  virtual void pause(PauseMode mode) = 0;
  virtual void resume() = 0;

  // True if step() would compute something, or has something to take from the device that matters.
  virtual bool can_step() const = 0;
  // One forward pass at most. Returns how long the caller has to wait before the next call: zero
  // from an engine that has taken the time itself, the simulated duration from a simulated one.
  virtual Duration step() = 0;
  virtual std::vector<EngineEvent> poll() = 0;  // since the last poll
  virtual EngineStats stats() const = 0;

  // The installed version; none before the first update.
  virtual std::optional<PolicyVersion> version() const = 0;
  // The version that the engine's work wants next, if that is not the installed one.
  virtual std::optional<PolicyVersion> wants(const VersionOffer& offer) = 0;
  // Whether finish_update() may be given a version where the publisher left it, in host memory of
  // any kind. Else it is given weight_sink().
  virtual bool installs_in_place() const = 0;
  // Where the bytes of an update go that arrives from elsewhere, one arena, in the host's memory
  // unless the configuration says otherwise; they may be written at any time before finish_update.
  // The sink is allocated when it is first asked for, and kept. The error is want of memory.
  virtual Result<std::span<std::byte>> weight_sink() = 0;
  // From now on the engine makes room for `version`: it starts nothing that would delay it for
  // long. A second call replaces the first.
  virtual void begin_update(PolicyVersion version) = 0;
  virtual bool may_finish_update() const = 0;  // an update has begun and nothing delays it
  // `arena` is the version of begin_update(), whole, and has been read on return. Returns as step()
  // does.
  virtual Duration finish_update(std::span<const std::byte> arena) = 0;
  // `version` can no longer be had: the work that wants exactly it becomes unservable.
  virtual void version_gone(PolicyVersion version) = 0;
};

// The header of a payload that lies at `ref`.
GroupHeader header_of(const GroupPayload& payload, runtime::PayloadRef ref);

}  // namespace tandem::actors
