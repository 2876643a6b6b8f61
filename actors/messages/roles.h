// The roles that a job's actors play, and the names of actors and of their rank processes. Names
// are built and taken apart only here, so that no other file depends on their form.
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
// The link name of one rank's process: the actor's own name for rank 0, such as "JOB/learner/0",
// and "JOB/learner/0@1" for rank 1.
std::string rank_name(const std::string& actor, int rank);
// The link name of a node's agent, "node/NAME@PID". Two agents that claim the same node name are
// different peers, and the controller decides which of them has the name.
std::string node_peer(const std::string& node, std::int64_t pid);
bool is_node_peer(const std::string& peer);
std::string node_of_peer(const std::string& peer);  // NAME; `peer` must be an is_node_peer()
std::string exchange_name(const std::string& job);  // "exchange/JOB"

}  // namespace tandem::actors
