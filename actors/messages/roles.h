// The roles that a job's actors play, and the names of actors and of their rank processes.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/ids.h"
#include "runtime/wire/fields.h"

namespace tandem::actors {

enum class Role : std::uint8_t { kRollout, kLearner, kReward };
TANDEM_WIRE_ENUM(Role, kRollout, kLearner, kReward)
inline constexpr Role kRoles[] = {Role::kRollout, Role::kLearner, Role::kReward};

const char* name(Role role);  // "rollout", "learner", "reward"
std::string actor_name(const std::string& job, Role role, int index);  // "JOB/rollout/0"
// The link name of one rank's process: the actor's own for rank 0, "JOB/learner/0@1" for others.
std::string rank_name(const std::string& actor, int rank);
// The link name of a node's agent, "node/NAME@PID": agents of one node's name are peers of their
// own, and the controller decides which of them has the name.
std::string node_peer(const std::string& node, std::int64_t pid);
bool is_node_peer(const std::string& peer);
std::string node_of_peer(const std::string& peer);  // of an is_node_peer(): NAME
std::string exchange_name(const std::string& job);  // "exchange/JOB"

}  // namespace tandem::actors
