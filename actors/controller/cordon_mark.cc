#include "actors/controller/cordon_mark.h"

#include "actors/controller/room.h"

namespace tandem::controller {

void mark_cordoned(Turn& turn, const std::string& name, NodeRecord& node, const std::string& why) {
  if (node.cordoned == why) return;
  node.cordoned = why;
  renew_room(turn.state, node);
  turn.remember(NodeCordoned{name, why});
  turn.note_change();
  turn.announce(node, "cordoned: " + why, messages::EventLevel::kWarning);
}

bool is_automatic(const NodeRecord& node) {
  return node.cordoned && node.cordoned->starts_with(kAutomatic);
}

void unmark_cordoned(Turn& turn, const std::string& name, NodeRecord& node) {
  if (turn.state.durable.cordoned().contains(name)) turn.remember(NodeUncordoned{name});
  node.cordoned.reset();
  renew_room(turn.state, node);
  turn.state.node_deaths.forget(name);
  turn.note_change();
  turn.announce(node, "takes new actors again");
}

}  // namespace tandem::controller
