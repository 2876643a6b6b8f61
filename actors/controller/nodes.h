// The nodes, as their agents come and go. A node whose agent is lost keeps the ranks whose own
// links are up, for as long as NodeRecord::agent_until says.
#pragma once

#include "actors/controller/turn.h"

namespace tandem::controller {

void take(Turn& turn, const node::NodeUp& up);
void take(Turn& turn, const NodeDown& down);

}  // namespace tandem::controller
