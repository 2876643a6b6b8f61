// The agent of one node: the actor that owns its rank processes. It does what the controller says
// and reports what happens; a process that ends is reported within the time a pidfd takes.
//
//   AG-1  Every SpawnRank is answered by RankSpawned and then one RankExited, or RankSpawnFailed.
//   AG-2  An agent whose name another one has asks again until that one would be known as lost;
//         then on_refused is called.
//
// Its processes end with the host that it was given (PH-2), which ends with the agent's process.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <variant>

#include "runtime/actor/actor.h"
#include "runtime/actor/context.h"
#include "runtime/base/clock.h"
#include "runtime/node/agent_messages.h"
#include "runtime/node/process_host.h"
#include "runtime/node/process_usage.h"

namespace tandem::runtime {

inline constexpr Duration kUsageInterval = std::chrono::seconds(1);

struct AgentConfig {
  NodeUp node;          // what it says of itself when it starts
  std::string program;  // this binary
  // The agent passes these to its ranks: where a rank dials, the address where it may listen for
  // other hosts (empty: it must not), and the address by which other hosts reach it.
  std::string controller, bind, advertise;
  std::string secret;         // what its ranks inherit (SpawnSpec::secret)
  Duration usage_interval{};  // between two UsageReports; zero: none, as in a simulation
  std::function<void(const NodeRefused&)> on_refused = {};  // AG-2; needed where others may come
};

// The arguments of a rank behind SpawnRank::arguments: the three places, and this process's pid.
std::vector<std::string> rank_words(const AgentConfig& config);

// A lost agent is known as lost when its link has been silent for 5 s, over TCP for 10 s (link.h).
inline constexpr int kNameAttemptsMax = 8;
inline constexpr Duration kNameRetryDelay = std::chrono::seconds(1);

class Agent {
 public:
  using Inbox = AgentInbox;

  // `host` outlives the agent.
  Agent(AgentConfig config, ProcessHost& host, Ref<AgentEvents> controller);

  void handle(Context& cx, SpawnRank spawn);
  void handle(Context& cx, StopRankProcess stop);
  void handle(Context& cx, NodeRefused refused);

 private:
  struct Running {
    ProcessId process;
    UsageMeter usage;
  };

  void introduce();
  void exited(const RankId& id, const ExitStatus& status);
  void report_usage(Context& cx);  // and again after the interval, while a rank lives

  const AgentConfig config_;
  ProcessHost& host_;
  const Ref<AgentEvents> controller_;
  std::map<RankId, Running> ranks_;
  bool usage_reported_ = false;  // a timer runs for the next report
  int introductions_ = 0;
};

static_assert(Actor<Agent>);

}  // namespace tandem::runtime
