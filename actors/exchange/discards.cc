#include "actors/exchange/discards.h"

#include "actors/messages/group_tokens.h"

namespace tandem::exchange {

void discard(Turn& turn, GroupId group, scheduler::DiscardReason reason) {
  const auto& header = turn.facts.flow.entries.at(group).header;
  if (header) {
    turn.seen.fleet.wasted(messages::completion_tokens(*header));
    turn.send(ReleasePayload{header->payload});
  }
  turn.record(GroupDiscarded{group, reason});
  turn.seen.groups.erase(group);
  turn.seen.notes.erase(group);
}

}  // namespace tandem::exchange
