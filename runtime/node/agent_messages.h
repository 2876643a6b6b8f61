// The conversation of a controller and a node's agent. An agent starts, stops and watches the rank
// processes that it is told to, and decides nothing.
//
//   controller -> agent   SpawnRank, StopRankProcess
//   agent -> controller   NodeUp, RankSpawned, RankSpawnFailed, RankExited
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "runtime/base/ids.h"
#include "runtime/node/gpus.h"
#include "runtime/wire/fields.h"

namespace tandem::runtime {

struct RankId {  // one process of one life of an actor
  std::string actor;
  Incarnation incarnation;
  std::int32_t rank = 0;
  auto operator<=>(const RankId&) const = default;
};
TANDEM_WIRE(RankId, actor, incarnation, rank)

struct SpawnRank {
  RankId id;
  std::vector<std::string> arguments;  // of this node's own binary; the agent adds its pid
  std::string log_path;
  std::vector<std::string> gpus;  // uuids: it sees these alone; empty: what the agent itself sees
};
TANDEM_WIRE(SpawnRank, id, arguments, log_path, gpus)

struct StopRankProcess {  // SIGTERM, and SIGKILL after the grace
  RankId id;
  std::int64_t grace_ms = 0;
};
TANDEM_WIRE(StopRankProcess, id, grace_ms)

using AgentInbox = std::variant<SpawnRank, StopRankProcess>;

struct NodeUp {
  std::string node;
  Incarnation incarnation;
  double cpus = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t pid = 0;
  std::vector<Gpu> gpus;
  std::vector<std::string> gpus_unusable;  // GpuListing's
  std::string gpus_absent;                 // why there are none
};
TANDEM_WIRE(NodeUp, node, incarnation, cpus, memory_bytes, pid, gpus, gpus_unusable, gpus_absent)

struct RankSpawned {
  RankId id;
  std::int64_t pid = 0;
};
TANDEM_WIRE(RankSpawned, id, pid)

struct RankSpawnFailed {
  RankId id;
  std::string message;
};
TANDEM_WIRE(RankSpawnFailed, id, message)

struct RankExited {
  RankId id;
  std::optional<std::int32_t> code;    // set if it exited by itself
  std::optional<std::int32_t> signal;  // set if a signal ended it
  std::string description;             // "killed by signal 9 (Killed)"
};
TANDEM_WIRE(RankExited, id, code, signal, description)

using AgentEvents = std::variant<NodeUp, RankSpawned, RankSpawnFailed, RankExited>;

}  // namespace tandem::runtime
