// The conversation of a controller and a node's agent. An agent starts, stops and watches the rank
// processes that it is told to, and decides nothing.
//
//   controller -> agent   SpawnRank, StopRankProcess, NodeRefused, IntroduceNode
//   agent -> controller   NodeUp, RankSpawned, RankSpawnFailed, RankExited, UsageReport
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/ids.h"
#include "runtime/node/gpus.h"
#include "runtime/node/memory_kills.h"
#include "runtime/wire/fields.h"

namespace tandem::node {

// The ports (runtime/link/remote.h) of an agent, and of the controller for all agents.
inline constexpr const char* kAgentPort = "agent";
inline constexpr const char* kAgentEventsPort = "controller/agents";

// For how long a host that has no controller keeps its ranks at work, unless its controller has
// said otherwise (link::Hello::grace).
inline constexpr Duration kNodeGraceDefault = std::chrono::minutes(5);

TANDEM_WIRE_ENUM(MemoryKill, kNone, kProven, kHinted)

// One process of one incarnation of an actor.
struct RankId {
  std::string actor;
  Incarnation incarnation;
  std::int32_t rank = 0;  // from 0; rank 0 has the actor's mailbox
  auto operator<=>(const RankId&) const = default;
};
TANDEM_WIRE(RankId, actor, incarnation, rank)
// Whether a controller tells agents to start `a` after `b`: a later incarnation, or a higher rank.
inline bool comes_later(const RankId& a, const RankId& b) {
  return std::pair(a.incarnation, a.rank) > std::pair(b.incarnation, b.rank);
}

// The order to start a rank process: of the node's own binary, or of a user's program.
struct SpawnRank {
  RankId id;
  // Arguments of the node's own binary. Without a program the agent adds where the controller is,
  // and its own pid (rank_words). With one, the program's argv follows them: the binary starts it.
  std::vector<std::string> arguments;
  std::string log_path;  // stdout and stderr are appended
  // Uuids of the GPUs that the process sees. Empty: it sees those that the agent sees.
  std::vector<std::string> gpus;
  // The argv of a user's program; empty: the node's own binary runs alone. A program gets the
  // words that our binary has as arguments in the variable kActorVariable, and `environment` beside
  // the agent's own. The directory exists on every host, since the log is in it.
  std::vector<std::string> program;
  std::map<std::string, std::string> environment;
  std::string working_directory;  // empty: that of the agent
};
TANDEM_WIRE(SpawnRank, id, arguments, log_path, gpus, program, environment, working_directory)
// The words in the variable: actor, incarnation, rank, then those of rank_words(), with the
// separator between them.
inline constexpr const char* kActorVariable = "TANDEM_ACTOR";
inline constexpr char kActorWordSeparator = '\x1f';

// The order to end a rank process: SIGTERM, and SIGKILL after the grace. It has no answer of its
// own; the process's end is reported as any other. Nothing happens where the rank is unknown.
struct StopRankProcess {
  RankId id;
  std::int64_t grace_ms = 0;
};
TANDEM_WIRE(StopRankProcess, id, grace_ms)

// The answer to a NodeUp while another agent, whose link is up, has this node's name.
struct NodeRefused {
  std::int64_t pid = 0;  // the other agent's process
};
TANDEM_WIRE(NodeRefused, pid)

// The order to tell of the node again: its link is heard again after a silence.
struct IntroduceNode {
  bool again = true;  // the wire needs a field
};
TANDEM_WIRE(IntroduceNode, again)

using AgentInbox = std::variant<SpawnRank, StopRankProcess, NodeRefused, IntroduceNode>;

// A rank process that lives, as the node tells of it when it introduces itself.
struct LivingRank {
  RankId id;
  std::int64_t pid = 0;
};
TANDEM_WIRE(LivingRank, id, pid)

// The process has ended and has been reaped. One of code and signal is set, or neither where nobody
// could see how it ended, since its agent was dead.
struct RankExited {
  RankId id;
  std::optional<std::int32_t> code;              // set if it exited by itself
  std::optional<std::int32_t> signal;            // set if a signal ended it
  std::string description;                       // "killed by signal 9 (Killed)"
  MemoryKill out_of_memory = MemoryKill::kNone;  // whether the kernel killed it for want of memory
  std::int64_t memory_peak_bytes = 0;            // the largest resident set
  // The resident set at the last look, at most about a second before the end; none: no look was
  // taken.
  std::optional<std::int64_t> memory_last_bytes;
};
TANDEM_WIRE(RankExited, id, code, signal, description, out_of_memory, memory_peak_bytes,
            memory_last_bytes)

// The NCCL library that an agent finds in its environment, which its ranks inherit.
struct NodeNccl {
  std::int32_t version = 0;  // 22809 for 2.28.9; 0: none was found, or looked for
  std::string path;          // the library's file
  bool shares_gpus = false;  // ranks of one communicator may share a GPU
  std::string absent;        // why there is no NCCL; empty where the node has no GPU
};
TANDEM_WIRE(NodeNccl, version, path, shares_gpus, absent)
// The first version in which ranks of one communicator may share a GPU: 2.30.3.
inline constexpr std::int32_t kNcclSharesGpusSince = 23003;
inline constexpr std::size_t kNcclTextMax = 4096;  // bytes of path, and of absent

// An agent's introduction: a node's name, what the node offers, and the ranks that it holds. Sent
// when the agent starts, whenever it has a link again, when it is asked, when its host is to end,
// and after a NodeRefused. The figures are those of the agent's start.
struct NodeUp {
  std::string node;
  Incarnation incarnation;        // the agent's incarnation
  double cpus = 0;                // usable cores; a fraction where a quota says so
  std::int64_t memory_bytes = 0;  // free for ranks
  std::int64_t pid = 0;           // the agent's process
  std::vector<Gpu> gpus;
  std::vector<std::string> gpus_unusable;  // GpuListing::unusable
  std::string gpus_absent;                 // why there is no usable GPU; empty where there is one
  NodeNccl nccl;
  std::vector<LivingRank> ranks;  // that live now
  // The newest ends, at most kEndsTold of them: their reports may not have arrived.
  std::vector<RankExited> ended;
  // Of the ranks that this agent was told to start, the one that comes last (comes_later). It was
  // not told of those behind it: the controller, or the link, was gone by then. Nothing: it was
  // told to start none; what the agent before it was told is not known.
  std::optional<RankId> newest_order;
  // Whoever gave the host takes it back: its actors are to move to other nodes.
  bool leaving = false;
};
TANDEM_WIRE(NodeUp, node, incarnation, cpus, memory_bytes, pid, gpus, gpus_unusable, gpus_absent,
            nccl, ranks, ended, newest_order, leaving)
inline constexpr std::size_t kEndsTold = 256;

// The process has started and its program is loaded.
struct RankSpawned {
  RankId id;
  std::int64_t pid = 0;
};
TANDEM_WIRE(RankSpawned, id, pid)

// No process was started.
struct RankSpawnFailed {
  RankId id;
  std::string message;  // why, for people
  bool disk = false;    // it lacks_disk() (runtime/base/file.h)
};
TANDEM_WIRE(RankSpawnFailed, id, message, disk)

// A ProcessUsage (process_usage.h) of one rank.
struct RankUsage {
  RankId id;
  double cpu_percent = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t stopped_ms = 0;
};
TANDEM_WIRE(RankUsage, id, cpu_percent, memory_bytes, stopped_ms)

// The use of the ranks that run, once per interval. CPU and memory are for people; a rank that is
// stopped for long is hung (scheduler/fleet/hang_timeout.h, HT-4).
struct UsageReport {
  std::vector<RankUsage> ranks;
};
TANDEM_WIRE(UsageReport, ranks)

using AgentEvents = std::variant<NodeUp, RankSpawned, RankSpawnFailed, RankExited, UsageReport>;

}  // namespace tandem::node
