// Each strike begins its fault now and sets a timer for its end. A target that has gone meanwhile
// is left alone.
#include "tests/actors/controller/fault_kinds.h"

#include <algorithm>
#include <utility>

#include "tests/actors/controller/scenario.h"

namespace tandem::controller {

namespace {

using Ranks = std::vector<node::RankId>;
constexpr std::int64_t kCutMaxMs = 60'000;

Duration lasts(const Fault& fault) { return std::chrono::milliseconds(fault.lasts_ms); }

void later(const Stricken& at, Duration after, std::function<void()> what) {
  auto& executor = at.cluster.executor();
  executor.at(executor.now() + after, std::move(what));
}

template <class T>
const T* chosen(const std::vector<T>& from, const Fault& fault) {
  return from.empty() ? nullptr : &from[fault.target % from.size()];
}

std::vector<std::string> hosts_with_agent(const Stricken& at) {
  std::vector<std::string> hosts = at.cluster.nodes_up();
  std::erase_if(hosts,
                [&](const std::string& host) { return !at.cluster.node(host)->has_agent(); });
  return hosts;
}

bool rank_death(const Stricken& at, const Fault& fault) {
  const Ranks ranks = at.cluster.ranks_running();
  const node::RankId* const rank = chosen(ranks, fault);
  if (rank) at.cluster.kill(*rank);
  return rank;
}

bool gang_rank_death(const Stricken& at, const Fault& fault) {
  Ranks ranks = at.cluster.ranks_running();
  std::erase_if(ranks, [](const node::RankId& rank) { return rank.rank == 0; });
  const node::RankId* const rank = chosen(ranks, fault);
  if (rank) at.cluster.kill(*rank);
  return rank;
}

bool stop_rank(const Stricken& at, const Fault& fault, SimulatedProcess::Stop what) {
  const Ranks ranks = at.cluster.ranks_running();
  const node::RankId* const rank = chosen(ranks, fault);
  SimulatedProcess* const process = rank ? at.cluster.process_of(*rank) : nullptr;
  if (!process) return false;
  process->stop(what);
  later(at, lasts(fault), [&cluster = at.cluster, rank = *rank, what] {
    if (SimulatedProcess* const again = cluster.process_of(rank)) again->go_on(what);
  });
  return true;
}

bool rank_hang(const Stricken& at, const Fault& fault) {
  return stop_rank(at, fault, SimulatedProcess::Stop::kActors);
}

bool zombie(const Stricken& at, const Fault& fault) {
  return stop_rank(at, fault, SimulatedProcess::Stop::kAll);
}

bool agent_death(const Stricken& at, const Fault& fault) {
  const auto hosts = hosts_with_agent(at);
  const std::string* const host = chosen(hosts, fault);
  if (!host) return false;
  // Until the next agent is known, nobody can end a process that hangs or has lost its link.
  at.cluster.hide(*host, lasts(fault));
  const auto agent = at.cluster.node(*host)->kill_agent();
  // The controller that an agent keeps sees the end of its process before that of its link.
  const bool is_kept = fault.target / hosts.size() % 2 == 0;
  if (agent && is_kept && !at.cluster.network().conditions().remote)
    at.cluster.tell_of_ended_agent(*host, *agent);
  later(at, lasts(fault), [&cluster = at.cluster, host = *host] {
    if (SimulatedNode* const node = cluster.node(host)) node->start_agent();
  });
  return true;
}

bool agent_zombie(const Stricken& at, const Fault& fault) {
  const auto hosts = hosts_with_agent(at);
  const std::string* const host = chosen(hosts, fault);
  if (!host) return false;
  at.cluster.hide(*host, lasts(fault));
  later(at, lasts(fault), at.cluster.node(*host)->stop_agent());
  return true;
}

bool node_death(const Stricken& at, const Fault& fault) {
  const auto hosts = at.cluster.nodes_up();
  const std::string* const host = chosen(hosts, fault);
  if (!host) return false;
  at.cluster.kill_node(*host);
  later(at, lasts(fault) + Duration{1},
        [&cluster = at.cluster, host = *host] { cluster.add_node(host, kNodeCpus); });
  return true;
}

// Whoever gave the host ends it in any case, and gives it again.
bool host_ends(const Stricken& at, const Fault& fault) {
  const auto hosts = hosts_with_agent(at);
  const std::string* const host = chosen(hosts, fault);
  if (!host || !at.cluster.node(*host)->leave()) return false;
  later(at, lasts(fault), [&cluster = at.cluster, host = *host] { cluster.kill_node(host); });
  later(at, lasts(fault) + Duration{1},
        [&cluster = at.cluster, host = *host] { cluster.add_node(host, kNodeCpus); });
  return true;
}

bool controller_death(const Stricken& at, const Fault& fault) {
  at.cluster.crash_controller(lasts(fault));
  return true;
}

bool payload_loss(const Stricken& at, const Fault& fault) {
  SimulatedRun& run = *at.cluster.run_of(at.job);
  run.damaged_rows = std::ssize(run.record.entries);
  return controller_death(at, fault);
}

// A process holds the locks of its files until it has ended, so the next controller begins only
// then: of one that stood still nothing can come late but what its links had left to send.
bool controller_zombie(const Stricken& at, const Fault& fault) {
  at.cluster.network().wake_lost_server_after(lasts(fault));
  at.cluster.crash_controller(std::chrono::milliseconds(fault.target));
  return true;
}

bool controller_stall(const Stricken& at, const Fault& fault) {
  at.cluster.stall_controller(lasts(fault));
  return true;
}

bool cut(const Stricken& at, const Fault& fault, const std::string& whom,
         const std::vector<Way>& ways) {
  for (const Way way : ways) at.cluster.network().cut_way(whom, way);
  later(at, lasts(fault), [&network = at.cluster.network(), whom, ways] {
    for (const Way way : ways) network.mend_way(whom, way);
  });
  return true;
}

// Hosts that are joined by TCP are waited for, until what was cut off has ended by itself (LK-5).
bool cut_host(const Stricken& at, const Fault& fault, const std::string& host,
              const std::vector<Way>& ways) {
  if (!at.cluster.network().conditions().remote) at.cluster.hide(host, lasts(fault));
  return cut(at, fault, host, ways);
}

bool partition(const Stricken& at, const Fault& fault) {
  const auto hosts = at.cluster.nodes_up();
  const std::string* const host = chosen(hosts, fault);
  return host && cut_host(at, fault, *host, {Way::kToServer, Way::kToClient});
}

bool one_way(const Stricken& at, const Fault& fault) {
  const auto hosts = at.cluster.nodes_up();
  const std::string* const host = chosen(hosts, fault);
  const Way way = fault.target / hosts.size() % 2 ? Way::kToServer : Way::kToClient;
  return host && cut_host(at, fault, *host, {way});
}

// The link of one rank alone is cut, both ways, and comes back. The rank's agent can end it.
bool link_loss(const Stricken& at, const Fault& fault) {
  const Ranks ranks = at.cluster.ranks_running();
  const node::RankId* const rank = chosen(ranks, fault);
  return rank && cut(at, fault, messages::rank_name(rank->actor, rank->rank),
                     {Way::kToServer, Way::kToClient});
}

bool packet_loss(const Stricken& at, const Fault& fault) {
  at.cluster.network().lose_packets(0.3);
  later(at, lasts(fault), [&network = at.cluster.network()] { network.lose_packets(0); });
  return true;
}

bool full_mailbox(const Stricken& at, const Fault& fault) {
  const Time until = at.cluster.executor().now() + lasts(fault);
  const Ranks ranks = at.cluster.ranks_running();
  if (fault.target % 2 == 0 || ranks.empty()) {
    at.cluster.network().fill_server(until);
    return true;
  }
  const node::RankId& rank = ranks[fault.target / 2 % ranks.size()];
  at.cluster.network().fill_client({messages::rank_name(rank.actor, rank.rank), rank.incarnation},
                                   until);
  return true;
}

bool slow_journal(const Stricken& at, const Fault& fault) {
  at.cluster.disk().slow_until = at.cluster.executor().now() + lasts(fault);
  at.cluster.disk().slow_by = std::chrono::milliseconds(1 + fault.target % 200);
  return true;
}

bool journal_fails(const Stricken& at, const Fault& fault) {
  at.cluster.disk().remember_fails_until = at.cluster.executor().now() + lasts(fault);
  return true;
}

bool journal_full(const Stricken& at, const Fault&) {
  at.cluster.run_of(at.job)->record.disk_full = true;
  return true;
}

bool disk_full(const Stricken& at, const Fault& fault) {
  at.cluster.run_of(at.job)->record.full_until_ms =
      (at.cluster.executor().now() + lasts(fault)).ns / 1'000'000;
  return true;
}

bool clock_jump(const Stricken& at, const Fault& fault) {
  const Ranks ranks = at.cluster.ranks_running();
  // Of the controller's host mostly; by up to twenty minutes.
  const Duration forward = fault.target % 3 == 0 ? lasts(fault) * 60 : lasts(fault);
  if (fault.target % 2 == 0 || ranks.empty()) {
    // What it waits for by its clock, such as nodes that may come back, is over at once.
    for (const std::string& host : at.cluster.nodes_up()) at.cluster.hide(host, {});
    at.cluster.jump_controller_clock(forward);
    return true;
  }
  SimulatedProcess* const process = at.cluster.process_of(ranks[fault.target / 2 % ranks.size()]);
  if (process) process->jump_clock(forward);
  return process;
}

bool publish_timeout(const Stricken& at, const Fault& fault) {
  at.cluster.run_of(at.job)->weights.timeouts += 1 + static_cast<int>(fault.target % 2);
  return true;
}

bool spawn_failure(const Stricken& at, const Fault& fault) {
  const auto hosts = at.cluster.nodes_up();
  const std::string* const host = chosen(hosts, fault);
  if (host) at.cluster.node(*host)->machine().fail_spawns(1 + static_cast<int>(fault.target % 3));
  return host;
}

using Kind = FaultKind;
constexpr std::array<FaultRow, kFaultKinds> kRows = {{
    {Kind::kRankDeath, "rank_death", "SIGKILL to a rank", 0, false, nullptr, rank_death},
    {Kind::kGangRankDeath, "gang_rank_death", "SIGKILL to a rank of a gang that is not rank 0", 0,
     false, nullptr, gang_rank_death},
    {Kind::kRankHang, "rank_hang", "a rank handles nothing, while its link lives", 90'000, false,
     nullptr, rank_hang},
    {Kind::kZombie, "zombie", "SIGSTOP to a rank, and SIGCONT later", 20'000, false, nullptr,
     zombie},
    {Kind::kAgentDeath, "agent_death", "an agent dies alone, and another one follows", 10'000,
     false, nullptr, agent_death},
    {Kind::kAgentZombie, "agent_zombie", "SIGSTOP to an agent, and SIGCONT later", 20'000, false,
     nullptr, agent_zombie},
    {Kind::kNodeDeath, "node_death", "a host goes down with all of its processes, and comes back",
     5'000, false, nullptr, node_death},
    {Kind::kControllerDeath, "controller_death", "SIGKILL to the controller, and another one",
     3'000, true, nullptr, controller_death},
    {Kind::kControllerStall, "controller_stall", "the controller's actors wait, its links live",
     5'000, true, nullptr, controller_stall},
    {Kind::kPartition, "partition", "a host is cut off, and both sides live", kCutMaxMs, false,
     nullptr, partition},
    {Kind::kOneWay, "one_way", "a host hears and is not heard, or the other way round", kCutMaxMs,
     false, nullptr, one_way},
    {Kind::kLinkLoss, "link_loss", "the link of one rank is cut, and comes back", 10'000, false,
     nullptr, link_loss},
    {Kind::kPacketLoss, "packet_loss", "a third of all packets is lost", 3'000, false, nullptr,
     packet_loss},
    {Kind::kFullMailbox, "full_mailbox", "the controller's process or a rank takes no message",
     2'000, false, nullptr, full_mailbox},
    {Kind::kSlowJournal, "slow_journal", "each write of a journal takes up to 200 ms", 2'000, true,
     nullptr, slow_journal},
    {Kind::kJournalFails, "journal_fails", "the controller's journal cannot be written", 3'000,
     true, nullptr, journal_fails},
    {Kind::kJournalFull, "journal_full", "the run's disk fails for good", 0, true, "disk is full",
     journal_full},
    {Kind::kClockJump, "clock_jump", "the clock of the controller or of a rank jumps forward",
     20'000, true, nullptr, clock_jump},
    {Kind::kPublishTimeout, "publish_timeout", "a publication of weights times out", 0, false,
     nullptr, publish_timeout},
    {Kind::kSpawnFailure, "spawn_failure", "a host starts no process, up to three times", 0, false,
     nullptr, spawn_failure},
    {Kind::kDiskFull, "disk_full", "the run's disk has no room for a while", 20'000, true, nullptr,
     disk_full},
    {Kind::kControllerZombie, "controller_zombie",
     "another controller follows one that stands still, whose packets come late", 10'000, true,
     nullptr, controller_zombie},
    {Kind::kPayloadLoss, "payload_loss",
     "SIGKILL to the controller, and another one, which finds a payload of the run damaged", 3'000,
     true, nullptr, payload_loss},
    {Kind::kHostEnds, "host_ends", "a host is told to end, ends, and comes back", 30'000, false,
     nullptr, host_ends},
}};

}  // namespace

const std::array<FaultRow, kFaultKinds>& fault_rows() { return kRows; }

const FaultRow& row_of(FaultKind kind) { return *std::ranges::find(kRows, kind, &FaultRow::kind); }

std::optional<FaultKind> kind_named(std::string_view name) {
  for (const FaultRow& row : kRows)
    if (row.name == name) return row.kind;
  return std::nullopt;
}

}  // namespace tandem::controller
