// Actors that have outlived the controller which started them. A new controller knows of them from
// what the former one remembered (durable.h), and gives each its record again, with the room that
// it holds. They come back in two steps: their node introduces itself and tells which ranks live,
// then each rank's link is up, and its start goes on as any other (ranks.h).
//
// In a job that trains, the actors of training go on where an exchange can meet them
// (JobRecord::follows); else they are ended, and started again.
#pragma once

#include "actors/controller/turn.h"

namespace tandem::controller {

// Gives a job that was just added (requests.h) what is remembered of it: its actors that run or
// have finished, their deaths, and its outcome if it has one.
void restore(Turn& turn, JobRecord& job);

// What is remembered of actors of a job that was just submitted: it was not taken up, and they are
// of an attempt at its run that is over.
void note_former(const ControllerState& state, JobRecord& job);

// The node was not up before: what it tells of its ranks is compared with the records. Ranks that
// it does not have any more are gone, and those that it was not told to start are started; ranks
// that nobody wants are told to end (unwanted.h).
void meet_ranks(Turn& turn, NodeRecord& node, const node::NodeUp& up);

}  // namespace tandem::controller
