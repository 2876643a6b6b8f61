// The room of the nodes: how much of it living ranks hold, and whether a job fits into it. Who gets
// the room that is free is decided in queue.h.
#pragma once

#include <string>
#include <vector>

#include "actors/controller/turn.h"
#include "scheduler/fleet/placement.h"

namespace tandem::controller {

// The record of a node; a new one is of a node of the controller before, which has not introduced
// itself to this one yet.
NodeRecord& known_node(Turn& turn, const std::string& name);

// The room of a node that no living rank holds, without GPUs that are cordoned or gone; none where
// the node is cordoned or ends ranks.
scheduler::NodeCapacity capacity_of(const NodeRecord& node);
// The nodes that are up.
std::vector<scheduler::NodeCapacity> capacity(const ControllerState& state);
// Called whenever a record has changed: what is leased, whether it is up, its cordons, its unwanted
// ranks (Lookups::room and ::lost).
void renew_room(ControllerState& state, const NodeRecord& node);
void date_node(ControllerState& state, NodeRecord& node, Time since);  // sets NodeRecord::since
std::string nccl_version_of(const NodeRecord& node);  // empty: the node has no NCCL

// Counts the rank's resources as taken from its node; give_back() counts them as free again. Each
// rank is leased once, when it is placed, and given back once, when its process is gone (CC-2).
void lease(Turn& turn, const RankRecord& rank);
void give_back(Turn& turn, const RankRecord& rank);

// ControllerCore has functions of these names, which say what they do.
Result<void> can_ever_run(const ControllerState& state, const JobShape& shape);
Result<JobShape> accepted(const ControllerState& state, const JobShape& shape);
JobShape settled(const ControllerState& state, JobShape shape);
// The job as it would be placed with the numbers of actors that are wanted now.
JobShape as_wanted(const JobRecord& job);

}  // namespace tandem::controller
