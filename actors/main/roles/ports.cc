#include "actors/main/roles/ports.h"

#include "actors/messages/roles.h"

namespace tandem::app {

std::string rollout_port(const std::string& job) {
  return messages::exchange_name(job) + "/rollout";
}
std::string learner_port(const std::string& job) {
  return messages::exchange_name(job) + "/learner";
}
std::string reward_port(const std::string& job) { return messages::exchange_name(job) + "/reward"; }
std::string broadcast_port(const std::string& job) {
  return messages::exchange_name(job) + "/broadcast";
}

}  // namespace tandem::app
