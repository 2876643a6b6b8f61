// The names of ports (runtime/link/remote.h). Four belong to the exchange of a job; the others to
// the controller, to an agent, and to a rank.
#pragma once

#include <string>

#include "actors/rank/rank_session.h"

namespace tandem::app {

std::string rollout_port(const std::string& job);
std::string learner_port(const std::string& job);
std::string reward_port(const std::string& job);
std::string broadcast_port(const std::string& job);
inline constexpr const char* kRankEventsPort = rank::kControllerRanksPort;
inline constexpr const char* kAgentEventsPort = "controller/agents";
inline constexpr const char* kAgentPort = "agent";
inline constexpr const char* kRankPort = rank::kRankInboxPort;
inline constexpr const char* kRolePort = "role";
inline constexpr const char* kBroadcastPort = "broadcast";  // the port of a rank that broadcasts

}  // namespace tandem::app
