// Nodes that take no new actors, because a user said so or actors kept dying on them
// (automatic_cordon.h): cordoned, and with their actors moved to other nodes, drained. A cordon
// outlives the node's agent and the controller (CC-5). As in requests.h, a request that fails
// (kNotFound) changes nothing.
#pragma once

#include "actors/controller/turn.h"

namespace tandem::controller {

// A drain lets each actor on the node finish its work, the learner its step and a checkpoint, and
// ends it then (actor_end.h starts it again). A gang of which one rank is on the node moves whole.
Result<void> take(Turn& turn, const CordonNode& cordon);
Result<void> take(Turn& turn, const UncordonNode& uncordon);  // what has moved away stays away

// The node's agent has introduced itself, and is taken. One whose host is to end is drained, and
// takes no actor. The next agent of its name is of a host that was given again.
void heed_leaving(Turn& turn, const node::NodeUp& up);

}  // namespace tandem::controller
