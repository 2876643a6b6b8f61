#include "actors/controller/cordon_mark.h"

namespace tandem::controller {

void mark_cordoned(Turn& turn, const std::string& name, NodeRecord& node, const std::string& why) {
  if (node.cordoned == why) return;
  node.cordoned = why;
  turn.remember(NodeCordoned{name, why});
  turn.note_change();
  turn.announce(node, "cordoned: " + why, messages::EventLevel::kWarning);
}

void unmark_cordoned(Turn& turn, const std::string& name, NodeRecord& node) {
  if (turn.state.durable.cordoned().contains(name)) turn.remember(NodeUncordoned{name});
  node.cordoned.reset();
  turn.state.node_deaths.forget(name);
  turn.note_change();
  turn.announce(node, "takes new actors again");
}

}  // namespace tandem::controller
