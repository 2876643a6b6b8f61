// The nodes, as their agents come and go. A node that is lost takes all of its ranks with it.
#pragma once

#include "actors/controller/turn.h"

namespace tandem::controller {

void take(Turn& turn, const node::NodeUp& up);
void take(Turn& turn, const NodeDown& down);

}  // namespace tandem::controller
