// One check() per type of message; the doors call them after DR-1. The limits are far above
// anything an honest peer sends: they keep later arithmetic from overflowing and texts from filling
// the memory, and are no policy. A message without a check of its own has nothing but its sender in
// it.
//
// A message that fails a check is no honest peer's, and the Error ends the link.
#include "actors/doors/doors.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/collective/nccl_api.h"
#include "runtime/link/endpoint.h"

namespace tandem::doors {

using link::PeerId;

namespace {

constexpr double kCpusMax = 1e6;
constexpr std::int64_t kMemoryBytesMax = std::int64_t{1} << 60;
constexpr std::int64_t kRankMemoryBytesMax = std::int64_t{1} << 50;  // a gang's is summed
constexpr std::size_t kGpusMax = 1024;
constexpr std::int32_t kNcclVersionMax = 10'000'000;
constexpr std::size_t kEndpointBytesMax = 512;
constexpr std::int32_t kSignalMax = 64;
constexpr std::int32_t kExitCodeMax = 255;
constexpr std::uint64_t kCountMax = std::uint64_t{1} << 53;  // a double keeps it exact
constexpr std::size_t kEpochWordsBytesMax = 16384;           // an error or a label
constexpr std::size_t kTroubleLinesMax = 64;  // lines of stderr; an honest reward sends fewer

Error wrong(const std::string& what) { return {ErrorCode::kInvalid, what}; }

bool is_amount(double value) { return std::isfinite(value) && value >= 0; }
bool is_step(std::int64_t step) { return step >= 0 && step <= kStepsMax; }
// kInitialWeights is the version before any training; nothing is below it.
bool is_version(PolicyVersion version) {
  return version >= kInitialWeights && version.value <= kStepsMax;
}

// The link's name and incarnation were checked when it was opened; the message must repeat them.
Result<void> speaks_for_itself(const PeerId& from, const std::string& actor,
                               Incarnation incarnation, std::int32_t rank) {
  if (rank >= 0 && messages::rank_name(actor, rank) == from.name && incarnation == from.incarnation)
    return {};
  return wrong("speaks for " + messages::rank_name(actor, rank) + "#" +
               std::to_string(incarnation.value));
}

Result<void> check(const messages::RolloutUp& up) {
  if (up.capacity < 1) return wrong("RolloutUp: a capacity of " + std::to_string(up.capacity));
  return {};
}

Result<void> check(const messages::Installed& installed) {
  if (!is_version(installed.version) || !is_amount(installed.seconds))
    return wrong("Installed: version " + std::to_string(installed.version.value));
  return {};
}

// Whether the group and its lease exist is for the exchange to say.
Result<void> check(const messages::Generated& generated) {
  for (const messages::GroupHeader& group : generated.groups) {
    const std::string name = "Generated: group " + std::to_string(group.group.value);
    if (group.prompt_tokens < 0 || group.trajectories.empty())
      return wrong(name + " has no trajectories, or a prompt of less than no tokens");
    for (const messages::TrajectoryHeader& trajectory : group.trajectories)
      if (!is_version(trajectory.oldest) || !is_version(trajectory.newest) ||
          trajectory.oldest > trajectory.newest || trajectory.completion_tokens < 0)
        return wrong(name + " has a trajectory of versions " +
                     std::to_string(trajectory.oldest.value) + " to " +
                     std::to_string(trajectory.newest.value) + " and " +
                     std::to_string(trajectory.completion_tokens) + " tokens");
  }
  return {};
}

Result<void> check(const messages::Unservable&) { return {}; }

Result<void> check(const messages::Evaluated& evaluated) {
  const bool indices = std::ranges::all_of(
      evaluated.completions, [](const auto& text) { return text.index >= 0 && text.sample >= 0; });
  if (indices && std::ranges::all_of(evaluated.unservable, [](int index) { return index >= 0; }))
    return {};
  return wrong("Evaluated: an index below 0");
}

// Histograms are summed by bucket, so both sides must have the same number of buckets.
Result<void> check(const messages::Latencies& latencies) {
  for (const messages::LatencyFamily& family : messages::kLatencyFamilies) {
    const messages::Histogram& histogram = latencies.*family.histogram;
    const std::string name = std::string("RolloutStats: ") + family.name;
    if (histogram.counts.size() != family.bounds.size() + 1)
      return wrong(name + " has " + std::to_string(histogram.counts.size()) + " buckets, not " +
                   std::to_string(family.bounds.size() + 1));
    if (!is_amount(histogram.sum) ||
        std::ranges::any_of(histogram.counts, [](auto count) { return count > kCountMax; }))
      return wrong(name + " has a count or a sum that no engine reaches");
  }
  return {};
}

Result<void> check(const messages::RolloutStats& stats) {
  // Counters are unsigned; the wire has checked their type.
  if (stats.requests_running < 0 || stats.requests_waiting < 0 ||
      !is_amount(stats.kv_cache_usage) || !is_amount(stats.busy_seconds) ||
      !is_amount(stats.missing_seconds) || (stats.missing && !is_version(*stats.missing)))
    return wrong("RolloutStats: a count below 0, or a figure that is none");
  return check(stats.latencies);
}

Result<void> check(const messages::RewardUp& up) {
  if (up.capacity < 1) return wrong("RewardUp: a capacity of " + std::to_string(up.capacity));
  return {};
}

// A failure is a valid answer; a score must fit a reward, enters means, and has an `extra` that is
// kept until the group is trained.
bool is_score(const messages::TrajectoryScore& score) {
  const auto* scored = std::get_if<messages::Scored>(&score);
  return !scored || (!messages::score_fault(scored->value) &&
                     scored->extra.size() <= messages::kExtraBytesMax);
}

Result<void> check(const messages::GroupsScored& scored) {
  for (const messages::GroupScore& group : scored.groups)
    if (!std::ranges::all_of(group.scores, is_score))
      return wrong("GroupsScored: group " + std::to_string(group.group.value) +
                   " has a score that is no number");
  return {};
}

Result<void> check(const messages::RewardTrouble& trouble) {
  const bool counted = trouble.attempt >= 0 && trouble.attempts >= 0 && trouble.count >= 0;
  if (!counted || trouble.stderr_tail.size() > kTroubleLinesMax)
    return wrong("RewardTrouble: attempt " + std::to_string(trouble.attempt) + " of " +
                 std::to_string(trouble.attempts) + ", " +
                 std::to_string(trouble.stderr_tail.size()) + " lines");
  return {};
}

Result<void> check(const messages::TextsScored& scored) {
  for (const messages::TextScore& text : scored.scores)
    if (text.index < 0 || text.sample < 0 || !is_score(text.score))
      return wrong("TextsScored: text " + std::to_string(text.index) +
                   " does not exist, or has a score that is no number");
  return {};
}

Result<void> check_offered(const std::vector<PolicyVersion>& offered) {
  if (offered.size() > messages::kOfferedMax)
    return wrong("a publisher of " + std::to_string(offered.size()) + " versions");
  for (const PolicyVersion version : offered)
    if (!is_version(version)) return wrong("offers version " + std::to_string(version.value));
  return {};
}

// `version`: the only version that this message can be about.
Result<void> check(const messages::Publication& publication, PolicyVersion version) {
  if (auto fits = check_offered(publication.offered); !fits) return fits;
  if (std::ranges::find(publication.offered, version) == publication.offered.end())
    return wrong("publishes version " + std::to_string(version.value) + " and does not offer it");
  if (const auto& place = publication.broadcast; place && (place->epoch < 1 || place->sequence < 1))
    return wrong("broadcasts a version as number " + std::to_string(place->sequence) +
                 " of epoch " + std::to_string(place->epoch));
  if (publication.version == version && is_version(version) &&
      publication.oldest_retained >= kInitialWeights && publication.oldest_retained <= version &&
      is_amount(publication.seconds))
    return {};
  return wrong("publishes version " + std::to_string(publication.version.value) + " and retains " +
               std::to_string(publication.oldest_retained.value));
}

// Without an endpoint the source names its host alone; with one all fields are set.
Result<void> check(const wire::WeightSource& source) {
  const bool serves = !source.endpoint.empty();
  for (const std::string* text :
       {&source.host, &source.endpoint, &source.server_key, &source.client_key})
    if (text->empty() == (serves || text == &source.host) || text->size() > wire::kSourceTextMax)
      return wrong("LearnerUp: a source of weights with a field of " +
                   std::to_string(text->size()) + " bytes");
  if (!serves) return {};
  if (const auto at = link::parse_endpoint(source.endpoint); at && !at->is_local()) return {};
  return wrong("LearnerUp: a source of weights at no TCP address");
}

Result<void> check(const messages::LearnerUp& up) {
  if (up.checkpoint && !is_step(up.checkpoint->value))
    return wrong("LearnerUp: checkpoint " + std::to_string(up.checkpoint->value));
  if (auto fits = check_offered(up.offered); !fits) return fits;
  return up.source ? check(*up.source) : Result<void>();
}

Result<void> check(const messages::Published& published) {
  return check(published.publication, published.publication.version);
}

Result<void> check(const messages::WarmStartProgress& progress) {
  if (progress.step < 0 || progress.steps_max < 0)
    return wrong("WarmStartProgress: step " + std::to_string(progress.step));
  return {};
}

// The warm start makes version 0.
Result<void> check(const messages::WarmStarted& started) {
  if (started.steps < 0) return wrong("WarmStarted: " + std::to_string(started.steps) + " steps");
  return check(started.publication, PolicyVersion{0});
}

// Step s makes version s + 1, so a publication with it can be of no other version.
Result<void> check(const messages::StepCommitted& committed) {
  if (!is_step(committed.step.value))
    return wrong("StepCommitted: step " + std::to_string(committed.step.value));
  if (!committed.publication) return {};
  return check(*committed.publication, PolicyVersion{committed.step.value + 1});
}

Result<void> check(const messages::CheckpointSaved& saved) {
  // Lower-case hexadecimal, at most the 64 digits of a SHA-256; empty is allowed.
  const bool digest = std::ranges::all_of(saved.weights_sha256, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  });
  if (is_step(saved.step.value) && digest && saved.weights_sha256.size() <= 64) return {};
  return wrong("CheckpointSaved: step " + std::to_string(saved.step.value) +
               ", or a digest that is none");
}

Result<void> check(const messages::LearnerFailed&) { return {}; }

Result<void> check(const messages::BroadcastUp& up) {
  if (up.nccl_version < 1)
    return wrong("BroadcastUp: version " + std::to_string(up.nccl_version) + " of NCCL");
  return {};
}

// The id and the layout are passed on to all members.
Result<void> check(const messages::EpochOpened& opened) {
  if (opened.unique_id.size() != collective::kNcclUniqueIdBytes)
    return wrong("EpochOpened: a unique id of " + std::to_string(opened.unique_id.size()) +
                 " bytes");
  if (opened.layout.size() > messages::kLayoutBytesMax)
    return wrong("EpochOpened: a layout of " + std::to_string(opened.layout.size()) + " bytes");
  return {};
}

Result<void> check(const messages::EpochJoined&) { return {}; }
Result<void> check(const messages::EpochInUse&) { return {}; }
Result<void> check(const messages::EpochLeft&) { return {}; }

Result<void> check(const messages::EpochFailed& failed) {
  if (failed.message.size() > kEpochWordsBytesMax)
    return wrong("EpochFailed: a message of " + std::to_string(failed.message.size()) + " bytes");
  return {};
}

// Milliseconds become doubles in views, so they stay below kCountMax.
Result<void> check(const messages::EpochProgress& progress) {
  if (progress.operations.size() > messages::kEpochOperationsMax)
    return wrong("EpochProgress: " + std::to_string(progress.operations.size()) + " operations");
  for (const messages::EpochOperation& operation : progress.operations)
    if (operation.label.size() > kEpochWordsBytesMax || operation.since_ms < 0 ||
        operation.since_ms > static_cast<std::int64_t>(kCountMax))
      return wrong("EpochProgress: an operation since " + std::to_string(operation.since_ms) +
                   " ms, or a label of " + std::to_string(operation.label.size()) + " bytes");
  return {};
}

// A door for the events of some roles' actors; every alternative names its sender as `from`.
template <class Events>
link::Door<Events> role_door(const std::string& job, const std::vector<messages::Role>& roles) {
  std::vector<std::string> prefixes;
  for (const messages::Role& role : roles) prefixes.push_back(job + "/" + name(role) + "/");
  return [prefixes](const PeerId& from, const Events& events) -> Result<void> {
    return std::visit(
        [&](const auto& message) -> Result<void> {
          if (std::ranges::none_of(prefixes,
                                   [&](const auto& p) { return from.name.starts_with(p); }))
            return wrong("is none of " + prefixes.front() + "*");
          const messages::Sender& sender = message.from;
          if (auto own = speaks_for_itself(from, sender.actor, sender.incarnation, 0); !own)
            return own;
          return check(message);
        },
        events);
  };
}

Result<void> check(const PeerId& from, const messages::RankListening& listening) {
  if (listening.gang_endpoint.size() > kEndpointBytesMax ||
      listening.gang_secret.size() > kEndpointBytesMax)
    return wrong("RankListening: an endpoint of " + std::to_string(listening.gang_endpoint.size()) +
                 " bytes, a secret of " + std::to_string(listening.gang_secret.size()));
  return speaks_for_itself(from, listening.actor, listening.incarnation, 0);
}

Result<void> check(const PeerId& from, const messages::RankReady& ready) {
  return speaks_for_itself(from, ready.actor, ready.incarnation, ready.rank);
}

Result<void> check(const PeerId& from, const messages::RankFailed& failed) {
  return speaks_for_itself(from, failed.actor, failed.incarnation, failed.rank);
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

// The link's name has the node and the agent's pid; the message must name the same.
Result<void> check(const PeerId& from, const node::NodeUp& up, const NodeOf&) {
  if (from.name != messages::node_peer(up.node, up.pid) || from.incarnation != up.incarnation)
    return wrong("introduces itself as node " + up.node);
  const bool gpus = std::ranges::all_of(up.gpus, [](const node::Gpu& gpu) {
    return gpu.memory_bytes >= 0 && gpu.memory_bytes <= kMemoryBytesMax;
  });
  if (std::isfinite(up.cpus) && up.cpus >= 0 && up.cpus <= kCpusMax && up.memory_bytes >= 0 &&
      up.memory_bytes <= kMemoryBytesMax && up.pid >= 0 && gpus && up.gpus.size() <= kGpusMax)
    return check(up.nccl);
  return wrong("NodeUp: has resources that no machine has");
}

// A node may report on a rank that is not known any more: the report is late, and has no effect.
Result<void> check_rank(const PeerId& from, const node::RankId& rank, const NodeOf& node_of) {
  const auto node = node_of(rank);
  if (messages::is_node_peer(from.name) && rank.rank >= 0 &&
      (!node || messages::node_of_peer(from.name) == *node))
    return {};
  return wrong("speaks of " + messages::rank_name(rank.actor, rank.rank) + "#" +
               std::to_string(rank.incarnation.value) + ", which is not its own");
}

Result<void> check(const PeerId& from, const node::RankSpawned& spawned, const NodeOf& node_of) {
  if (spawned.pid < 0) return wrong("RankSpawned: pid " + std::to_string(spawned.pid));
  return check_rank(from, spawned.id, node_of);
}

Result<void> check(const PeerId& from, const node::RankSpawnFailed& failed, const NodeOf& node_of) {
  return check_rank(from, failed.id, node_of);
}

Result<void> check(const PeerId& from, const node::RankExited& exited, const NodeOf& node_of) {
  const auto within = [](const std::optional<std::int32_t>& value, std::int32_t max) {
    return !value || (*value >= 0 && *value <= max);
  };
  if (!within(exited.code, kExitCodeMax) || !within(exited.signal, kSignalMax))
    return wrong("RankExited: no process ends that way");
  if (exited.memory_peak_bytes < 0 || exited.memory_last_bytes.value_or(0) < 0)
    return wrong("RankExited: a process of negative size");
  return check_rank(from, exited.id, node_of);
}

Result<void> check(const PeerId& from, const node::UsageReport& report, const NodeOf& node_of) {
  for (const node::RankUsage& usage : report.ranks) {
    if (!is_amount(usage.cpu_percent) || usage.cpu_percent > 100 * kCpusMax ||
        usage.memory_bytes < 0 || usage.memory_bytes > kRankMemoryBytesMax)
      return wrong("UsageReport: uses more than a machine has, or less than nothing");
    if (auto own = check_rank(from, usage.id, node_of); !own) return own;
  }
  return {};
}

}  // namespace

link::Door<messages::RolloutEvents> rollout_door(std::string job) {
  return role_door<messages::RolloutEvents>(job, {messages::Role::kRollout});
}

link::Door<messages::RewardEvents> reward_door(std::string job) {
  return role_door<messages::RewardEvents>(job, {messages::Role::kReward});
}

link::Door<messages::LearnerEvents> learner_door(std::string job) {
  return role_door<messages::LearnerEvents>(job, {messages::Role::kLearner});
}

link::Door<messages::BroadcastEvents> broadcast_door(std::string job) {
  return role_door<messages::BroadcastEvents>(job,
                                              {messages::Role::kRollout, messages::Role::kLearner});
}

link::Door<messages::RankEvents> rank_door() {
  return [](const PeerId& from, const messages::RankEvents& events) {
    return std::visit([&](const auto& message) { return check(from, message); }, events);
  };
}

link::Door<node::AgentEvents> agent_door(NodeOf node_of) {
  return [node_of = std::move(node_of)](const PeerId& from, const node::AgentEvents& events) {
    return std::visit([&](const auto& message) { return check(from, message, node_of); }, events);
  };
}

void Roster::started(const std::string& node, const node::RankId& rank) {
  ranks_[messages::rank_name(rank.actor, rank.rank)] = {rank.incarnation, node};
}

void Roster::forget(const std::string& job) {
  std::erase_if(ranks_, [&](const auto& rank) { return rank.first.starts_with(job + "/"); });
}

void Roster::has_agent(std::string own_node) { own_node_ = std::move(own_node); }

Result<void> Roster::admit(const link::Hello& hello) const {
  // A node's name is free to choose, but not ours, and not one with the marks of incarnations in
  // it.
  if (messages::is_node_peer(hello.name)) {
    const std::string node = messages::node_of_peer(hello.name);
    if (!node.empty() && node.find_first_of("@#") == std::string::npos && node != own_node_ &&
        hello.name == messages::node_peer(node, hello.pid))
      return {};
    return wrong("that is no name of another node");
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
