// The doors of the controller's own ports, and the roster. Those of an exchange have a source for
// each peer.
#include "actors/doors/doors.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "actors/doors/message_checks.h"

namespace tandem::doors {

namespace {

constexpr double kCpusMax = 1e6;
constexpr std::int64_t kMemoryBytesMax = std::int64_t{1} << 60;
constexpr std::int64_t kRankMemoryBytesMax = std::int64_t{1} << 50;  // a gang's is summed
constexpr std::int64_t kStoppedMsMax = std::int64_t{1} << 40;        // 35 years
constexpr std::size_t kGpusMax = 1024;
constexpr std::size_t kUuidBytesMax = 128;  // of a GPU
constexpr std::size_t kRanksMax = 4096;     // of a node, as its agent's host has it
constexpr std::int32_t kNcclVersionMax = 10'000'000;
constexpr std::size_t kEndpointBytesMax = 512;
constexpr std::int32_t kSignalMax = 64;
constexpr std::int32_t kExitCodeMax = 255;

Result<void> check(const ActorId& from, const messages::RankListening& listening) {
  if (listening.gang_endpoint.size() > kEndpointBytesMax ||
      listening.gang_secret.size() > kEndpointBytesMax)
    return wrong("RankListening: an endpoint of " + std::to_string(listening.gang_endpoint.size()) +
                 " bytes, a secret of " + std::to_string(listening.gang_secret.size()));
  return speaks_for_itself(from, {listening.actor, listening.incarnation}, 0);
}

Result<void> check(const ActorId& from, const messages::RankReady& ready) {
  if (ready.sandbox.size() > messages::kSandboxTextMax)
    return wrong("RankReady: a sandbox of " + std::to_string(ready.sandbox.size()) + " bytes");
  return speaks_for_itself(from, {ready.actor, ready.incarnation}, ready.rank);
}

Result<void> check(const ActorId& from, const messages::RankFailed& failed) {
  return speaks_for_itself(from, {failed.actor, failed.incarnation}, failed.rank);
}

Result<void> check(const ActorId& from, const messages::RankPreempted& preempted) {
  return speaks_for_itself(from, {preempted.actor, preempted.incarnation}, preempted.rank);
}

Result<void> check(const node::NodeNccl& nccl) {
  const bool found = nccl.version > 0;
  const bool versions = nccl.version >= 0 && nccl.version <= kNcclVersionMax;
  // Either a version with a path, or no version with a reason.
  const bool texts = nccl.path.empty() != found && (nccl.absent.empty() || !found) &&
                     nccl.path.size() <= node::kNcclTextMax &&
                     nccl.absent.size() <= node::kNcclTextMax;
  const bool shares = !nccl.shares_gpus || nccl.version >= node::kNcclSharesGpusSince;
  if (versions && texts && shares) return {};
  return wrong("NodeUp: an NCCL that cannot be: version " + std::to_string(nccl.version) +
               ", a path of " + std::to_string(nccl.path.size()) + " bytes");
}

// A node may report on a rank that is not known any more: the report is late, and has no effect.
Result<void> check_rank(const ActorId& from, const node::RankId& rank, const NodeOf& node_of) {
  const auto node = node_of(rank);
  if (messages::is_node_peer(from.name) && rank.rank >= 0 &&
      (!node || messages::node_of_peer(from.name) == *node))
    return {};
  return wrong("speaks of " +
               to_string(ActorId{messages::rank_name(rank.actor, rank.rank), rank.incarnation}) +
               ", which is not its own");
}

Result<void> check(const ActorId& from, const node::RankSpawned& spawned, const NodeOf& node_of) {
  if (spawned.pid < 0) return wrong("RankSpawned: pid " + std::to_string(spawned.pid));
  return check_rank(from, spawned.id, node_of);
}

Result<void> check(const ActorId& from, const node::RankSpawnFailed& failed,
                   const NodeOf& node_of) {
  return check_rank(from, failed.id, node_of);
}

Result<void> check(const ActorId& from, const node::RankExited& exited, const NodeOf& node_of) {
  const auto within = [](const std::optional<std::int32_t>& value, std::int32_t max) {
    return !value || (*value >= 0 && *value <= max);
  };
  if (!within(exited.code, kExitCodeMax) || !within(exited.signal, kSignalMax))
    return wrong("RankExited: no process ends that way");
  if (exited.memory_peak_bytes < 0 || exited.memory_last_bytes.value_or(0) < 0)
    return wrong("RankExited: a process of negative size");
  return check_rank(from, exited.id, node_of);
}

// Ranks are told of their GPUs by a list of uuids with commas between them.
bool is_uuid(const std::string& uuid) {
  return !uuid.empty() && uuid.size() <= kUuidBytesMax && uuid.find(',') == std::string::npos;
}

// The ranks that a node says to have, and their ends.
Result<void> check_ranks(const ActorId& from, const node::NodeUp& up, const NodeOf& node_of) {
  if (up.ranks.size() > kRanksMax || up.ended.size() > node::kEndsTold)
    return wrong("NodeUp: tells of " + std::to_string(up.ranks.size()) + " ranks and " +
                 std::to_string(up.ended.size()) + " ends");
  for (const node::LivingRank& rank : up.ranks)
    if (auto own = check(from, node::RankSpawned{rank.id, rank.pid}, node_of); !own) return own;
  for (const node::RankExited& ended : up.ended)
    if (auto own = check(from, ended, node_of); !own) return own;
  if (up.newest_order) return check_rank(from, *up.newest_order, node_of);
  return {};
}

// The link's name has the node and the agent's pid; the message must name the same.
Result<void> check(const ActorId& from, const node::NodeUp& up, const NodeOf& node_of) {
  if (from.name != messages::node_peer(up.node, up.pid) || from.incarnation != up.incarnation)
    return wrong("introduces itself as node " + up.node);
  std::set<std::string> uuids;
  const bool gpus = std::ranges::all_of(up.gpus, [&](const node::Gpu& gpu) {
    return gpu.memory_bytes >= 0 && gpu.memory_bytes <= kMemoryBytesMax && is_uuid(gpu.uuid) &&
           uuids.insert(gpu.uuid).second;
  });
  if (auto own = check_ranks(from, up, node_of); !own) return own;
  if (std::isfinite(up.cpus) && up.cpus >= 0 && up.cpus <= kCpusMax && up.memory_bytes >= 0 &&
      up.memory_bytes <= kMemoryBytesMax && up.pid >= 0 && gpus && up.gpus.size() <= kGpusMax)
    return check(up.nccl);
  return wrong("NodeUp: has resources that no machine has");
}

Result<void> check(const ActorId& from, const node::UsageReport& report, const NodeOf& node_of) {
  for (const node::RankUsage& usage : report.ranks) {
    if (!is_amount(usage.cpu_percent) || usage.cpu_percent > 100 * kCpusMax ||
        usage.memory_bytes < 0 || usage.memory_bytes > kRankMemoryBytesMax)
      return wrong("UsageReport: uses more than a machine has, or less than nothing");
    if (usage.stopped_ms < 0 || usage.stopped_ms > kStoppedMsMax)
      return wrong("UsageReport: is stopped for longer than can be, or for less than no time");
    if (auto own = check_rank(from, usage.id, node_of); !own) return own;
  }
  return {};
}

}  // namespace

link::Door<messages::RankEvents> rank_door() {
  return [](const ActorId& from, const messages::RankEvents& events) {
    return std::visit([&](const auto& message) { return check(from, message); }, events);
  };
}

link::Door<node::AgentEvents> agent_door(NodeOf node_of) {
  return [node_of = std::move(node_of)](const ActorId& from, const node::AgentEvents& events) {
    return std::visit([&](const auto& message) { return check(from, message, node_of); }, events);
  };
}

void Roster::started(const std::string& node, const node::RankId& rank) {
  ranks_[messages::rank_name(rank.actor, rank.rank)] = {rank.incarnation, node};
}

void Roster::forget(const std::string& job) {
  // Their names lie together: '0' follows '/'.
  ranks_.erase(ranks_.lower_bound(job + "/"), ranks_.lower_bound(job + "0"));
}

Result<void> Roster::admit(const link::Hello& hello) const {
  // A node's name is free to choose, but not one with the marks of incarnations in it.
  if (messages::is_node_peer(hello.name)) {
    const std::string node = messages::node_of_peer(hello.name);
    if (!node.empty() && node.find_first_of("@#") == std::string::npos &&
        hello.name == messages::node_peer(node, hello.pid))
      return {};
    return wrong("that is no name of a node");
  }
  // A hello is believed only if a rank of that name was started and this is its newest incarnation.
  const auto rank = ranks_.find(hello.name);
  if (rank == ranks_.end()) return wrong("no rank of that name was started");
  if (hello.incarnation != rank->second.incarnation)
    return wrong("incarnation " + std::to_string(rank->second.incarnation.value) +
                 " of that name was started last");
  // A rank's hello has the name of its actor as the opaque part.
  if (hello.rank < 0 || messages::rank_name(hello.opaque, hello.rank) != hello.name)
    return wrong("says to be rank " + std::to_string(hello.rank) + " of " + hello.opaque);
  return {};
}

std::optional<std::string> Roster::node_of(const node::RankId& rank) const {
  const auto found = ranks_.find(messages::rank_name(rank.actor, rank.rank));
  if (found == ranks_.end() || found->second.incarnation != rank.incarnation) return std::nullopt;
  return found->second.node;
}

}  // namespace tandem::doors
