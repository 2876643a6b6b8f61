// The interface between a rollout actor and the object that generates tokens. The actor drives one
// Engine, one step at a time, submits requests to it, and moves its results out.
//
// There are three implementations: NativeEngine (native_engine.h) computes with a model;
// ServedEngine (external/served_engine.h) has a server compute, such as vLLM's; FakeEngine
// (fake_engine.h) makes tokens up in virtual time, so that a whole fleet fits into one simulated
// process.
//
// Invariants, for every engine
//   EN-1  Weights change in finish_update(), and while installing() after it, and nowhere else; and
//         never while a sequence runs that must end by the version it began with (see work_queue.h
//         for which these are).
//   EN-2  Every submitted group is answered by exactly one event, unless it was cancelled or the
//         engine failed; every submitted evaluation likewise.
//   EN-3  A trajectory's `oldest` is at most the version of any of its tokens and of any key or
//         value that they read.
//   EN-4  The tokens of trajectory i follow from the weights, the prompt and
//         derive_seed(seed, {i}), not from what else runs.
//   EN-5  A token whose log-probability is not finite is never answered: the engine fails instead.
//
// Threads: an engine is called by one thread at a time. No call waits for anything but the engine's
// own arithmetic.
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
#include "actors/rollout/engine_config.h"
#include "runtime/base/clock.h"
#include "runtime/base/result.h"

namespace tandem::rollout {

// The engine cannot generate this group. `message` says why in words, for the log and the journal.
struct GroupUnservable {
  GroupId group;
  std::uint32_t attempt = 0;
  messages::UnservableReason reason = messages::UnservableReason::kPromptTooLong;
  std::string message;
};

// All completions of one Evaluate message. `unservable` has the indices of prompts that got none.
struct EvaluationDone {
  messages::EvaluationId evaluation;
  std::vector<messages::EvaluationText> completions;
  std::vector<std::int32_t> unservable;
};

// The engine cannot go on: it computed something that is no number. Everything that it held is
// cancelled; no tokens of that step are handed out, since they would be arbitrary.
struct EngineFailed {
  Error error;
};

using EngineEvent =
    std::variant<messages::GroupPayload, GroupUnservable, EvaluationDone, EngineFailed>;

// The first two counters of EngineStats alone, which are asked for after each step.
struct TokenCounts {
  std::uint64_t generation_tokens = 0, prompt_tokens = 0;
};

struct EngineStats {  // counters since the engine's start; the last four are current values
  std::uint64_t generation_tokens = 0;
  std::uint64_t prompt_tokens = 0;         // computed as part of a prompt, recomputation included
  std::uint64_t prefix_cache_queries = 0;  // tokens looked up
  std::uint64_t prefix_cache_hits = 0;     // tokens found
  std::uint64_t preemptions = 0;
  messages::Latencies latencies;
  std::int32_t sequences_running = 0;
  std::int32_t sequences_waiting = 0;
  double kv_cache_usage = 0;                     // 0…1
  std::optional<messages::GroupProgress> first;  // RolloutStats::first
};

// The versions that a publisher holds: those from `oldest_retained` to `newest`.
struct VersionOffer {
  PolicyVersion newest;
  PolicyVersion oldest_retained;
};

class Engine {
 public:
  virtual ~Engine() = default;

  // Requests start by their `due` step, earliest first; evaluations start before groups, up to
  // their share (work_queue.h, WQ-5).
  virtual void submit(messages::GroupWork work) = 0;
  virtual void submit(messages::Evaluate evaluation) = 0;
  virtual void cancel(std::span<const GroupId> groups) = 0;  // unknown ones are ignored
  virtual void cancel_evaluations() = 0;
  virtual void cancel_all() = 0;  // evaluations as well

  // True if step() would compute something, would take a result from the device that is still
  // needed, or would tell that the engine has failed by itself.
  virtual bool can_step() const = 0;
  // Computes at most one forward pass; CHECKs can_step(). Returns how long the caller must wait
  // before the next call: zero from an engine that has spent the time itself, the simulated
  // duration from a simulated engine.
  virtual Duration step() = 0;
  virtual std::vector<EngineEvent> poll() = 0;  // the events since the last poll
  virtual EngineStats stats() const = 0;        // allocates, for the histograms
  virtual TokenCounts tokens() const = 0;

  // The installed version; nullopt before the first update.
  virtual std::optional<PolicyVersion> version() const = 0;
  // The version that the engine's work needs next; nullopt if the installed one serves it.
  virtual std::optional<PolicyVersion> wants(const VersionOffer& offer) = 0;
  // Whether finish_update() can read a version where the publisher left it, in host memory of any
  // kind. If not, finish_update() is given weight_sink().
  virtual bool installs_in_place() const = 0;
  // The buffer for the bytes of a version that is copied here: one arena, in the host's memory
  // unless `weights_arrive_on_device` is set. The caller may write to the sink at any time before
  // finish_update(). The engine allocates the sink at the first call and keeps it. The Error means
  // that there is not enough memory.
  virtual Result<std::span<std::byte>> weight_sink() = 0;
  // After this call the engine makes room for `version`: it starts no request that would delay the
  // update for long. A second call replaces the first.
  virtual void begin_update(PolicyVersion version) = 0;
  virtual bool may_finish_update() const = 0;  // an update has begun and nothing delays it
  // Installs `arena`, which is the whole version of begin_update(). Returns a duration as step()
  // does. An engine that computes elsewhere passes the weights on in its steps: while installing(),
  // it can step, `arena` stays as it is, and version() is the one before. Else the bytes have been
  // read when the call returns. An engine that fails meanwhile keeps on installing().
  virtual Duration finish_update(std::span<const std::byte> arena) = 0;
  virtual bool installing() const { return false; }
  // The learner's log-probabilities of probe_tokens() under `version` (actors/model/probe.h), for
  // an engine that has to find out what it computes with; empty: not known.
  virtual void expect(PolicyVersion version, std::vector<float> probe) {
    (void)version, (void)probe;
  }
  // Says that `version` is no longer published: waiting work that is pinned to it becomes
  // unservable.
  virtual void version_gone(PolicyVersion version) = 0;
};

// The header by which the exchange knows a payload that is stored at `ref`.
messages::GroupHeader header_of(const messages::GroupPayload& payload, wire::PayloadRef ref);

}  // namespace tandem::rollout
