// `tandem rank …`: one rank of an actor, spawned by a node's agent. It dials the controller, is
// told by StartRank what it is, builds that role, and serves until SIGTERM, the loss of its
// controller or its parent's death.
//
// A hidden command: its arguments are this binary's own (rank_arguments) and no promise to users.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/base/ids.h"
#include "runtime/net/endpoint.h"
#include "runtime/node/agent_messages.h"

namespace tandem::cli {

inline constexpr const char* kRankCommand = "rank";
// Both ends of a link must be of one build: version, and size and time of the binary.
std::string build_id();

// The exchange's ports; a rank reaches them by name.
std::string rollout_port(const std::string& job);
std::string learner_port(const std::string& job);
std::string reward_port(const std::string& job);
std::string broadcast_port(const std::string& job);
inline constexpr const char* kRankEventsPort = "controller/ranks";
inline constexpr const char* kAgentEventsPort = "controller/agents";
inline constexpr const char* kAgentPort = "agent";
inline constexpr const char* kRankPort = "rank";
inline constexpr const char* kRolePort = "role";
inline constexpr const char* kBroadcastPort = "broadcast";  // of a rank that broadcasts weights

// Its agent adds its rank_words: the rank dies with it. Keys for a controller that is reached by
// TCP are inherited (SpawnSpec::secret).
std::vector<std::string> rank_arguments(const runtime::RankId& id);

// Exit code. `arguments` are those after "rank".
int run_rank(std::span<const char* const> arguments);

}  // namespace tandem::cli
