#include "actors/messages/roles.h"

namespace tandem::actors {

const char* name(Role role) {
  switch (role) {
    case Role::kRollout:
      return "rollout";
    case Role::kLearner:
      return "learner";
    case Role::kReward:
      return "reward";
  }
  return "";
}

std::string actor_name(const std::string& job, Role role, int index) {
  return job + "/" + name(role) + "/" + std::to_string(index);
}

std::string rank_name(const std::string& actor, int rank) {
  return rank == 0 ? actor : actor + "@" + std::to_string(rank);
}

std::string exchange_name(const std::string& job) { return "exchange/" + job; }

}  // namespace tandem::actors
