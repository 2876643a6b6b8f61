// The conversation of an exchange and a rollout actor.
//
//   exchange -> rollout   Assign, Evaluate, NewVersion, HandBack
//   rollout -> exchange   RolloutUp, Installed, Generated, Unservable, Evaluated, RolloutStats
//
// Links deliver in order, once, while both incarnations live; whoever dies loses its leases, so a
// message need not be acknowledged here. A rollout never holds more than the trajectories of its
// RolloutUp::capacity, the credit that the exchange spends by Assign and regains by Generated.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "actors/messages/latencies.h"
#include "runtime/base/ids.h"
#include "runtime/wire/broadcast_place.h"
#include "runtime/wire/fields.h"
#include "runtime/wire/payload_ref.h"
#include "runtime/wire/weight_source.h"

namespace tandem::actors {

using EvaluationId = Id<struct EvaluationTag>;

struct GroupWork {
  GroupId group;
  std::uint32_t attempt = 0;  // the lease's number: a new one each time the group is assigned
  StepId due;                 // priority: earliest first
  std::uint64_t seed = 0;     // trajectory i draws with derive_seed(seed, {i})
  std::int32_t n = 0;
  std::string prompt;
  // Set under fixed_lag: generated entirely by this version, which the publisher still retains.
  std::optional<PolicyVersion> version;
};
TANDEM_WIRE(GroupWork, group, attempt, due, seed, n, prompt, version)

struct Assign {
  std::vector<GroupWork> groups;
};
TANDEM_WIRE(Assign, groups)

// How an evaluation completes each of its prompts: `n` times, and with `greedy` once more. The
// first n completions are sampled, or greedy where the temperature is 0; completion n is greedy.
struct EvaluationSampling {
  std::int32_t n = 1;
  float temperature = 0;
  float top_p = 1;
  std::int32_t top_k = 0;  // 0: off
  bool greedy = false;
};
TANDEM_WIRE(EvaluationSampling, n, temperature, top_p, top_k, greedy)

constexpr std::int32_t completions_of(const EvaluationSampling& sampling) {
  return sampling.n + (sampling.greedy ? 1 : 0);
}
constexpr bool is_greedy(const EvaluationSampling& sampling, std::int32_t sample) {
  return sampling.temperature == 0 || sample == sampling.n;
}

struct EvaluationPrompt {
  std::int32_t index = 0;
  std::string prompt;
  std::uint64_t seed = 0;  // completion i draws with derive_seed(seed, {i})
};
TANDEM_WIRE(EvaluationPrompt, index, prompt, seed)

// All completions of each prompt, all by `version`; installs wait until they are done.
struct Evaluate {
  EvaluationId evaluation;
  PolicyVersion version;
  EvaluationSampling sampling;
  std::vector<EvaluationPrompt> prompts;
};
TANDEM_WIRE(Evaluate, evaluation, version, sampling, prompts)

// The publisher has `version` whole; those below `oldest_retained` are gone. A rollout installs
// only what was announced, never something newer that it happens to see: so an Evaluate that
// follows the announcement of its version always finds it.
struct NewVersion {
  PolicyVersion version;
  PolicyVersion oldest_retained;
  // Where rollouts of other hosts fetch the version. It names the learner's host alone where other
  // hosts are not served, and is absent where every rollout knows the place by itself.
  std::optional<runtime::WeightSource> source;
  // The version comes by broadcast as well, and the receiver is of that epoch.
  std::optional<runtime::BroadcastPlace> broadcast;
  std::uint64_t checksum = 0;  // checksum64 of the version's arena
};
TANDEM_WIRE(NewVersion, version, oldest_retained, source, broadcast, checksum)

// Drop these groups unfinished (all, when empty), because the actor drains or they are cancelled:
// their leases are over. One whose payload is being stored is told of by Generated all the same.
struct HandBack {
  std::vector<GroupId> groups;
};
TANDEM_WIRE(HandBack, groups)

using RolloutInbox = std::variant<Assign, Evaluate, NewVersion, HandBack>;

enum class FinishReason : std::uint8_t { kStop, kLength };
TANDEM_WIRE_ENUM(FinishReason, kStop, kLength)

struct TrajectoryHeader {
  PolicyVersion oldest;  // among its tokens and the KV that they read
  PolicyVersion newest;
  std::int32_t completion_tokens = 0;
  FinishReason finish = FinishReason::kStop;
};
TANDEM_WIRE(TrajectoryHeader, oldest, newest, completion_tokens, finish)

struct GroupHeader {
  GroupId group;
  std::uint32_t attempt = 0;
  std::int32_t prompt_tokens = 0;
  std::vector<TrajectoryHeader> trajectories;  // [n]
  runtime::PayloadRef payload;
};
TANDEM_WIRE(GroupHeader, group, attempt, prompt_tokens, trajectories, payload)

// Every message names its sender's life: the exchange refuses those of an older one.
struct Sender {
  std::string actor;
  Incarnation incarnation;
};
TANDEM_WIRE(Sender, actor, incarnation)

struct RolloutUp {
  Sender from;
  std::int32_t capacity = 0;  // trajectories it takes at once, prefetch included
};
TANDEM_WIRE(RolloutUp, from, capacity)

struct Installed {
  Sender from;
  PolicyVersion version;
  double seconds = 0;  // decoding paused for it
  // checksum64 of what was installed. The exchange ends a rollout whose checksum is not the one
  // that the learner published: no token of it is trained on.
  std::uint64_t checksum = 0;
};
TANDEM_WIRE(Installed, from, version, seconds, checksum)

struct Generated {
  Sender from;
  std::vector<GroupHeader> groups;
};
TANDEM_WIRE(Generated, from, groups)

enum class UnservableReason : std::uint8_t { kPromptTooLong, kCannotEncode, kVersionGone };
TANDEM_WIRE_ENUM(UnservableReason, kPromptTooLong, kCannotEncode, kVersionGone)

struct Unservable {
  Sender from;
  GroupId group;
  std::uint32_t attempt = 0;
  UnservableReason reason = UnservableReason::kPromptTooLong;
  std::string message;
};
TANDEM_WIRE(Unservable, from, group, attempt, reason, message)

struct EvaluationText {
  std::int32_t index = 0;   // of the prompt
  std::int32_t sample = 0;  // which of its completions
  std::string text;
  bool truncated = false;
  std::optional<std::string> special_text;  // as Trajectory has it
};
TANDEM_WIRE(EvaluationText, index, sample, text, truncated, special_text)

struct Evaluated {
  Sender from;
  EvaluationId evaluation;
  std::vector<EvaluationText> completions;
  std::vector<std::int32_t> unservable;  // prompts that are too long or can't be encoded
};
TANDEM_WIRE(Evaluated, from, evaluation, completions, unservable)

struct RolloutStats {  // every stats_interval; counters since the actor's start
  Sender from;
  std::uint64_t generation_tokens = 0;
  std::uint64_t prompt_tokens = 0;
  std::uint64_t prefix_cache_queries = 0;  // tokens looked up
  std::uint64_t prefix_cache_hits = 0;     // tokens found
  std::uint64_t preemptions = 0;
  std::int32_t requests_running = 0;
  std::int32_t requests_waiting = 0;
  double kv_cache_usage = 0;  // 0…1
  double busy_seconds = 0;    // in engine steps
  Latencies latencies;
};
TANDEM_WIRE(RolloutStats, from, generation_tokens, prompt_tokens, prefix_cache_queries,
            prefix_cache_hits, preemptions, requests_running, requests_waiting, kv_cache_usage,
            busy_seconds, latencies)

using RolloutEvents =
    std::variant<RolloutUp, Installed, Generated, Unservable, Evaluated, RolloutStats>;

}  // namespace tandem::actors
