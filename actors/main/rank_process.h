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

#include "runtime/base/ids.h"
#include "runtime/link/endpoint.h"
#include "runtime/node/agent_messages.h"

namespace tandem::app {

inline constexpr const char* kRankCommand = "rank";

// The arguments of a rank, up to those that its agent adds (rank_words): where to dial and listen,
// and the agent's pid, with which the rank dies. Keys for a controller that is reached by TCP are
// not arguments, which others could read; they are inherited (SpawnSpec::secret).
std::vector<std::string> rank_arguments(const node::RankId& id);

// Serves until the end and returns the exit code: 0 when told to end, 1 after a failure, 64 for
// wrong arguments. `arguments` are those after "rank".
int run_rank(std::span<const char* const> arguments);

}  // namespace tandem::app
