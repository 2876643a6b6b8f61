#include "actors/messages/roles.h"

#include <algorithm>
#include <string_view>

namespace tandem::messages {
namespace {

constexpr const char* kNodePeerPrefix = "node/";

// The other actors of ours, and roles that a later version may have.
constexpr std::string_view kTaken[] = {"controller",  "exchange", "node",     "agent",
                                       "environment", "critic",   "reference"};

bool is_lower(char c) { return c >= 'a' && c <= 'z'; }

}  // namespace

bool trains(const Role& role) {
  return std::ranges::find(kTrainingRoles, role) != std::end(kTrainingRoles);
}

bool holds_model(const Role& role) {
  return trains(role) &&
         std::ranges::find(kRolesWithoutModel, role) == std::end(kRolesWithoutModel);
}

Result<void> check_role_name(std::string_view text) {
  const bool formed = !text.empty() && text.size() <= kRoleNameMax && is_lower(text[0]) &&
                      std::ranges::all_of(text, [](char c) {
                        return is_lower(c) || (c >= '0' && c <= '9') || c == '_' || c == '-';
                      });
  if (!formed)
    return Error{ErrorCode::kInvalid, "`" + std::string(text) + "` cannot name a role", "",
                 "small letters, digits, `_` and `-`, starting with a letter, at most " +
                     std::to_string(kRoleNameMax) + " characters"};
  const bool taken = std::ranges::find(kTaken, text) != std::end(kTaken);
  if (taken || trains(Role{std::string(text)}))
    return Error{ErrorCode::kInvalid, "`" + std::string(text) + "` is a name of Tandem's own", "",
                 "choose another name"};
  return {};
}

std::string actor_name(const std::string& job, const Role& role, int index) {
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
  // The search begins at the right: the node's name may itself have an "@".
  const std::size_t begin = std::string_view(kNodePeerPrefix).size();
  return peer.substr(begin, peer.rfind('@') - begin);
}

std::string exchange_name(const std::string& job) { return "exchange/" + job; }

}  // namespace tandem::messages
