// The roles that a job's actors play, and the names of actors and of their rank processes. Names
// are built and taken apart only here, so that no other file depends on their form.
//
// Three roles train, and are built into the program. A job file may bring further ones, each a
// program of the user's (actors/messages/program.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/ids.h"
#include "runtime/base/result.h"
#include "runtime/wire/fields.h"

namespace tandem::messages {

// A role is known by its name, which is part of the names of its actors.
struct Role {
  std::string text;
  static const Role kRollout, kLearner, kReward;
  auto operator<=>(const Role&) const = default;
};
TANDEM_WIRE(Role, text)
inline const Role Role::kRollout{"rollout"};
inline const Role Role::kLearner{"learner"};
inline const Role Role::kReward{"reward"};
// The roles of a job that trains, in the order in which their actors are placed.
inline const Role kTrainingRoles[] = {Role::kRollout, Role::kLearner, Role::kReward};
// Roles of training whose actors hold no model: they take no GPU, and start a verifier instead.
inline const Role kRolesWithoutModel[] = {Role::kReward};

inline const std::string& name(const Role& role) { return role.text; }
bool trains(const Role& role);       // whether it is one of kTrainingRoles
bool holds_model(const Role& role);  // a role of training that is not one of kRolesWithoutModel
// Whether a job may call a role of its own so: kInvalid for a name that is not of the form
// [a-z][a-z0-9_-]*, has more than kRoleNameMax characters, or belongs to Tandem.
inline constexpr std::size_t kRoleNameMax = 32;
Result<void> check_role_name(std::string_view text);

std::string actor_name(const std::string& job, const Role& role, int index);  // "JOB/rollout/0"
// The link name of one rank's process: the actor's own name for rank 0, such as "JOB/learner/0",
// and "JOB/learner/0@1" for rank 1.
std::string rank_name(const std::string& actor, int rank);
// The link name of a node's agent, "node/NAME@PID". Two agents that claim the same node name are
// different peers, and the controller decides which of them has the name.
std::string node_peer(const std::string& node, std::int64_t pid);
bool is_node_peer(const std::string& peer);
std::string node_of_peer(const std::string& peer);  // NAME; `peer` must be an is_node_peer()
std::string exchange_name(const std::string& job);  // "exchange/JOB"

}  // namespace tandem::messages
