// The nodes, as their agents come and go. A node whose agent is lost keeps the ranks whose own
// links are up, for as long as NodeRecord::agent_until says. So does one that is silent, and it
// keeps its silent ranks too: they may work on, cut off, and are taken up again when it is heard.
#pragma once

#include "actors/controller/turn.h"

namespace tandem::controller {

void take(Turn& turn, const node::NodeUp& up);
void take(Turn& turn, const NodeDown& down);
void take(Turn& turn, const NodeSilent& silent);
// A user wants a silent node empty: ranks that are silent, or come back, are not waited for any
// longer.
void give_up_silent(Turn& turn, NodeRecord& node);

}  // namespace tandem::controller
