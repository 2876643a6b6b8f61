#include "actors/messages/payload.h"

namespace tandem::messages {

std::optional<std::string> misfit(const GroupPayload& payload, GroupId group) {
  if (payload.group != group) return "it is of group " + std::to_string(payload.group.value);
  if (payload.prompt_tokens.empty()) return "its prompt has no tokens";
  for (std::size_t i = 0; i < payload.trajectories.size(); ++i) {
    const Trajectory& trajectory = payload.trajectories[i];
    // The learner reads one log-probability for each token.
    if (trajectory.tokens.empty() || trajectory.tokens.size() != trajectory.logprobs.size())
      return "trajectory " + std::to_string(i) + " has " +
             std::to_string(trajectory.tokens.size()) + " tokens and " +
             std::to_string(trajectory.logprobs.size()) + " log-probabilities";
  }
  return std::nullopt;
}

}  // namespace tandem::messages
