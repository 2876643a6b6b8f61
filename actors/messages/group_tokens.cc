#include "actors/messages/group_tokens.h"

namespace tandem::messages {

std::uint64_t completion_tokens(const GroupHeader& header) {
  std::uint64_t tokens = 0;
  for (const TrajectoryHeader& trajectory : header.trajectories)
    tokens += static_cast<std::uint64_t>(trajectory.completion_tokens);
  return tokens;
}

}  // namespace tandem::messages
