#include "actors/messages/roles.h"

#include <string_view>

namespace tandem::actors {
namespace {

constexpr const char* kNodePeerPrefix = "node/";

}  // namespace

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
  // Rank 0 has the actor's mailbox, so peers reach it by the actor's own name.
  return rank == 0 ? actor : actor + "@" + std::to_string(rank);
}

std::string node_peer(const std::string& node, std::int64_t pid) {
  return kNodePeerPrefix + node + "@" + std::to_string(pid);
}

bool is_node_peer(const std::string& peer) { return peer.starts_with(kNodePeerPrefix); }

std::string node_of_peer(const std::string& peer) {
  // From the right: the node's name may itself have an "@".
  const std::size_t begin = std::string_view(kNodePeerPrefix).size();
  return peer.substr(begin, peer.rfind('@') - begin);
}

std::string exchange_name(const std::string& job) { return "exchange/" + job; }

}  // namespace tandem::actors
