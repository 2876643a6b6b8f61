// The conversation of a controller and a node's agent. An agent starts, stops and watches the rank
// processes that it is told to, and decides nothing.
//
//   controller -> agent   SpawnRank, StopRankProcess, NodeRefused
//   agent -> controller   NodeUp, RankSpawned, RankSpawnFailed, RankExited, UsageReport
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "runtime/base/ids.h"
#include "runtime/node/gpus.h"
#include "runtime/node/memory_kills.h"
#include "runtime/wire/fields.h"

namespace tandem::runtime {

TANDEM_WIRE_ENUM(MemoryKill, kNone, kProven, kHinted)

struct RankId {  // one process of one life of an actor
  std::string actor;
  Incarnation incarnation;
  std::int32_t rank = 0;
  auto operator<=>(const RankId&) const = default;
};
TANDEM_WIRE(RankId, actor, incarnation, rank)

struct SpawnRank {
  RankId id;
  std::vector<std::string> arguments;  // of this node's own binary; the agent adds where the
                                       // controller is, and its own pid
  std::string log_path;
  std::vector<std::string> gpus;  // uuids: it sees these alone; empty: what the agent itself sees
};
TANDEM_WIRE(SpawnRank, id, arguments, log_path, gpus)

struct StopRankProcess {  // SIGTERM, and SIGKILL after the grace
  RankId id;
  std::int64_t grace_ms = 0;
};
TANDEM_WIRE(StopRankProcess, id, grace_ms)

// The answer to a NodeUp while another agent that lives has this node's name.
struct NodeRefused {
  std::int64_t pid = 0;  // the other one's
};
TANDEM_WIRE(NodeRefused, pid)

using AgentInbox = std::variant<SpawnRank, StopRankProcess, NodeRefused>;

// The NCCL of an agent's environment, which its ranks inherit.
struct NodeNccl {
  std::int32_t version = 0;  // 22809 for 2.28.9; 0: none was found, or looked for
  std::string path;          // of its library
  bool shares_gpus = false;  // ranks of one communicator may share a GPU
  std::string absent;        // why there is none; empty where the node has no GPU
};
TANDEM_WIRE(NodeNccl, version, path, shares_gpus, absent)
inline constexpr std::int32_t kNcclSharesGpusSince = 23003;
inline constexpr std::size_t kNcclTextMax = 4096;  // bytes of path, and of absent

struct NodeUp {
  std::string node;
  Incarnation incarnation;
  double cpus = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t pid = 0;
  std::vector<Gpu> gpus;
  std::vector<std::string> gpus_unusable;  // GpuListing's
  std::string gpus_absent;                 // why there are none
  NodeNccl nccl;
};
TANDEM_WIRE(NodeUp, node, incarnation, cpus, memory_bytes, pid, gpus, gpus_unusable, gpus_absent,
            nccl)

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
  // Whether the kernel killed it for want of memory, and how large it was; bytes resident.
  MemoryKill out_of_memory = MemoryKill::kNone;
  std::int64_t memory_peak_bytes = 0;
  std::optional<std::int64_t> memory_last_bytes;  // at the last look, a second before the end
};
TANDEM_WIRE(RankExited, id, code, signal, description, out_of_memory, memory_peak_bytes,
            memory_last_bytes)

struct RankUsage {  // ProcessUsage's
  RankId id;
  double cpu_percent = 0;
  std::int64_t memory_bytes = 0;
};
TANDEM_WIRE(RankUsage, id, cpu_percent, memory_bytes)

struct UsageReport {  // of the ranks that live, once in a while; nothing depends on it
  std::vector<RankUsage> ranks;
};
TANDEM_WIRE(UsageReport, ranks)

using AgentEvents = std::variant<NodeUp, RankSpawned, RankSpawnFailed, RankExited, UsageReport>;

}  // namespace tandem::runtime
