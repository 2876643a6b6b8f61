// The agent of one node: the actor that owns its rank processes. It does what the controller says
// and reports what happens; a process that ends is reported within the time a pidfd takes.
//
//   AG-1  Every SpawnRank is answered by RankSpawned and then one RankExited, or RankSpawnFailed.
//
// Its processes end with the host that it was given (PH-2), which ends with the agent's process.
#pragma once

#include <map>
#include <string>
#include <variant>

#include "runtime/actor/actor.h"
#include "runtime/actor/context.h"
#include "runtime/node/agent_messages.h"
#include "runtime/node/process_host.h"

namespace tandem::runtime {

struct AgentConfig {
  NodeUp node;          // what it says of itself when it starts
  std::string program;  // this binary
};

class Agent {
 public:
  using Inbox = std::variant<SpawnRank, StopRankProcess>;

  // `host` outlives the agent.
  Agent(AgentConfig config, ProcessHost& host, Ref<AgentEvents> controller);

  void handle(Context& cx, SpawnRank spawn);
  void handle(Context& cx, StopRankProcess stop);

 private:
  void exited(const RankId& id, const ExitStatus& status);

  const AgentConfig config_;
  ProcessHost& host_;
  const Ref<AgentEvents> controller_;
  std::map<RankId, ProcessId> processes_;
};

static_assert(Actor<Agent>);

}  // namespace tandem::runtime
