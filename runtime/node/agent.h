// The agent of one node: the actor that owns the rank processes of the node. It starts and stops
// them as the controller says, reports their ends and their use of the node, and decides nothing.
// The end of a process is noticed by a pidfd, at once and without polling.
//
//   AG-1  Every SpawnRank is answered by RankSpawned and then one RankExited, or RankSpawnFailed,
//         while the link lasts. After LinkCameUp, NodeUp tells which ranks live and which have
//         ended. A second SpawnRank of a rank starts nothing: its start or its end is
//         told again.
//   AG-2  An agent whose name another agent has asks again until the other would be known as lost;
//         then on_refused is called.
//
//   AG-3  An agent that is given KeptRanks adopts the ranks of the agent before it, which has died,
//         before it introduces itself, and tells of those that have ended meanwhile.
//   AG-4  An agent that was told HostEnds says so in each introduction (NodeUp::leaving), and calls
//         on_empty as soon as it has no rank.
//
// The rank processes end with the ProcessHost (PH-2), and not with the link to a controller. Where
// the agent's process dies, those of an agent without KeptRanks end with it, and the others work on
// until their controller ends them, or none comes (actors/rank/rank_session.h).
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <variant>

#include "runtime/actor/actor.h"
#include "runtime/actor/context.h"
#include "runtime/base/clock.h"
#include "runtime/node/agent_messages.h"
#include "runtime/node/kept_ranks.h"
#include "runtime/node/process_host.h"
#include "runtime/node/process_usage.h"

namespace tandem::node {

inline constexpr Duration kUsageInterval = std::chrono::seconds(1);  // used by real agents

struct AgentConfig {
  NodeUp node;          // sent to the controller when the agent starts
  std::string program;  // path of this binary, which the ranks run
  // The agent passes these to its ranks: where a rank dials, the address where a rank may listen
  // for other hosts (empty: it must not), the address by which other hosts reach it, and the ports
  // at which it may listen (a PortRange of runtime/link; empty: any).
  std::string controller, bind, advertise, ports;
  std::string secret;         // inherited by the ranks (SpawnSpec::secret)
  Duration usage_interval{};  // between two UsageReports; zero: no reports, as in a simulation
  KeptRanks* kept = nullptr;  // AG-3; null: the ranks end with this process
  // How long a rank works on without a link to the controller, the first one included.
  Duration alone_max = kNodeGraceDefault;
  // AG-2. May be empty only where no other agent can have this node's name: else CHECKed.
  std::function<void(const NodeRefused&)> on_refused = {};
  std::function<void()> on_empty = {};  // AG-4; on the actor's thread
};

// The arguments of a rank behind SpawnRank::arguments: controller, bind, advertise, ports, the pid
// of this process, which a rank expects as its parent (arm_parent_death_signal), 0 where it may
// outlive this process, and AgentConfig::alone_max in seconds.
std::vector<std::string> rank_words(const AgentConfig& config);
// The words by which a process knows which rank it is: actor, incarnation, rank.
std::vector<std::string> id_words(const RankId& id);

// AG-2: how often an agent asks for its name, and the time between two attempts. A link counts as
// lost when it has been silent for 5 s, over TCP for 10 s (link.h).
inline constexpr int kNameAttemptsMax = 8;
inline constexpr Duration kNameRetryDelay = std::chrono::seconds(1);

// To the agent from its own process: there is a link to a controller, the first or another one,
// which has told how long ranks work on without it (AgentConfig::alone_max).
struct LinkCameUp {
  Duration alone_max = kNodeGraceDefault;
};

// To the agent from its own process, after a LinkCameUp: whoever gave the host takes it back.
struct HostEnds {};

class Agent {
 public:
  using Inbox =
      std::variant<SpawnRank, StopRankProcess, NodeRefused, IntroduceNode, LinkCameUp, HostEnds>;

  // Introduces itself with LinkCameUp. `host` and AgentConfig::kept must outlive the agent.
  Agent(AgentConfig config, ProcessHost& host, actor::Ref<AgentEvents> controller);
  void handle(actor::Context& cx, SpawnRank spawn);
  void handle(actor::Context& cx, StopRankProcess stop);
  void handle(actor::Context& cx, NodeRefused refused);
  void handle(actor::Context& cx, IntroduceNode ask);
  void handle(actor::Context& cx, LinkCameUp up);
  void handle(actor::Context& cx, HostEnds ends);

 private:
  // Tells the controller what the node offers and which ranks it has.
  void introduce();
  void end_if_empty();  // AG-4
  // A rank process that has started and whose end has not been reported.
  struct Running {
    ProcessId process;
    std::int64_t pid = 0;
    UsageMeter usage;
  };

  // Finds the ranks of an agent that has died (AG-3), then introduces itself.
  void find_ranks(actor::Context& cx);
  // False: the process may live, and cannot be watched for now.
  bool adopt(actor::Context& cx, const KeptRank& rank);
  ExitHandler on_exit(actor::Context& cx, const RankId& id);
  void report_spawn(const RankId& id, AgentEvents event);
  void note_end(const RankId& id, const ExitStatus& status);
  void exited(const RankId& id, const ExitStatus& status);  // notes and reports it
  void report_usage(actor::Context& cx);  // and again after the interval, while a rank runs

  AgentConfig config_;  // only alone_max changes
  ProcessHost& host_;
  const actor::Ref<AgentEvents> controller_;
  std::map<RankId, Running> ranks_;
  std::deque<RankExited> ended_;        // the newest, at most kEndsTold
  std::optional<RankId> newest_order_;  // as NodeUp has it
  bool usage_reported_ = false;         // a timer is set for the next report
  int introductions_ = 0;               // NodeUps that were sent
  bool adopted_ = false;                // AG-3
  std::uint64_t adoptions_failed_ = 0;
  bool leaving_ = false;  // AG-4
};

static_assert(actor::Actor<Agent>);

}  // namespace tandem::node
