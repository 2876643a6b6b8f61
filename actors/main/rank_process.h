// `tandem rank ...`: the process of one rank of an actor, spawned by a node's agent. It dials the
// controller, learns from StartRank which role it has, builds that role, and serves until SIGTERM,
// the loss of its controller or the death of its parent.
//
// A hidden command: its arguments are made by this binary (rank_arguments) and are no promise to
// users.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "actors/rank/rank_session.h"
#include "runtime/base/ids.h"
#include "runtime/net/endpoint.h"
#include "runtime/node/agent_messages.h"

namespace tandem::cli {

inline constexpr const char* kRankCommand = "rank";

// The names of ports (runtime/net/remote.h). Four belong to the exchange of a job; the others to
// the controller, to an agent, and to a rank.
std::string rollout_port(const std::string& job);
std::string learner_port(const std::string& job);
std::string reward_port(const std::string& job);
std::string broadcast_port(const std::string& job);
inline constexpr const char* kRankEventsPort = actors::kControllerRanksPort;
inline constexpr const char* kAgentEventsPort = "controller/agents";
inline constexpr const char* kAgentPort = "agent";
inline constexpr const char* kRankPort = actors::kRankInboxPort;
inline constexpr const char* kRolePort = "role";
inline constexpr const char* kBroadcastPort = "broadcast";  // of a rank that broadcasts

// The arguments of a rank, up to those that its agent adds (rank_words): where to dial and listen,
// and the agent's pid, with which the rank dies. Keys for a controller that is reached by TCP are
// not arguments, which others could read; they are inherited (SpawnSpec::secret).
std::vector<std::string> rank_arguments(const runtime::RankId& id);

// Serves until the end and returns the exit code: 0 when told to end, 1 after a failure, 64 for
// wrong arguments. `arguments` are those after "rank".
int run_rank(std::span<const char* const> arguments);

}  // namespace tandem::cli
