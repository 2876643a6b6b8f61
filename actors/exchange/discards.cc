#include "actors/exchange/discards.h"

namespace tandem::exchange {

std::uint64_t tokens_of(const messages::GroupHeader& header) {
  std::uint64_t tokens = 0;
  for (const messages::TrajectoryHeader& trajectory : header.trajectories)
    tokens += static_cast<std::uint64_t>(trajectory.completion_tokens);
  return tokens;
}

void discard(Turn& turn, GroupId group, scheduler::DiscardReason reason) {
  const auto& header = turn.facts.flow.entries.at(group).header;
  if (header) {
    turn.seen.fleet.wasted(tokens_of(*header));
    turn.send(ReleasePayload{header->payload});
  }
  turn.record(GroupDiscarded{group, reason});
  turn.seen.groups.erase(group);
  turn.seen.notes.erase(group);
}

}  // namespace tandem::exchange
