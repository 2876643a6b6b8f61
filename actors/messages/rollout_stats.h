// What a rollout tells of its work now and then.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "actors/messages/latencies.h"
#include "runtime/base/ids.h"
#include "runtime/base/linear_fit.h"
#include "runtime/wire/fields.h"

namespace tandem {
TANDEM_WIRE(FitSums, count, x1, x2, y, x1x1, x1x2, x2x2, x1y, x2y)
}  // namespace tandem

namespace tandem::messages {

// How far a group is that a rollout generates.
struct GroupProgress {
  GroupId group;
  std::int32_t tokens = 0;      // of the unfinished completion that has fewest
  std::int32_t tokens_max = 0;  // that each completion may have
};
TANDEM_WIRE(GroupProgress, group, tokens, tokens_max)

// Sent every stats_interval. Counters count from the actor's start. A growing generation_tokens
// shows progress and extends the leases of the sender.
struct RolloutStats {
  ActorId from;
  std::uint64_t generation_tokens = 0;
  std::uint64_t prompt_tokens = 0;  // tokens of prompts; those found in the cache do not count
  // Figures of the prefix cache are in tokens; hits / queries is the share found.
  std::uint64_t prefix_cache_queries = 0;  // tokens looked up
  std::uint64_t prefix_cache_hits = 0;     // tokens found
  std::uint64_t preemptions = 0;
  std::int32_t requests_running = 0;
  std::int32_t requests_waiting = 0;
  double kv_cache_usage = 0;  // share of the pages that are in use, 0…1
  double busy_seconds = 0;    // spent in engine steps
  FitSums step_seconds;       // of each step: by its generated tokens and its tokens of prompts
  Latencies latencies;
  // Set while a version that the engine's work needs cannot be had, and for how long already.
  std::optional<PolicyVersion> missing;
  double missing_seconds = 0;
  std::string no_room;                 // the error, while payloads wait for room on their disk
  std::optional<GroupProgress> first;  // of the groups that have begun, the one that is due first
};
TANDEM_WIRE(RolloutStats, from, generation_tokens, prompt_tokens, prefix_cache_queries,
            prefix_cache_hits, preemptions, requests_running, requests_waiting, kv_cache_usage,
            busy_seconds, step_seconds, latencies, missing, missing_seconds, no_room, first)

}  // namespace tandem::messages
