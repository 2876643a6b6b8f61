// Processes of incarnations that are over and that a node tells of all the same: nobody wants them
// any more. They are told to end. Before they have, their node has no room, and no other
// incarnation of their actors starts.
#pragma once

#include <vector>

#include "actors/controller/turn.h"

namespace tandem::controller {

void end_unwanted(Turn& turn, NodeRecord& node, const std::vector<node::RankId>& ranks);
void forget_unwanted(Turn& turn, NodeRecord& node);  // the node is lost, with those processes
// Notes the end of such a process. False: it is none.
bool take_end_of_unwanted(Turn& turn, const node::RankId& id);

}  // namespace tandem::controller
