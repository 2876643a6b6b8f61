// What an event must find in the controller's records, kept beside them, so that no event looks at
// all nodes, actors or jobs. Plain values that follow from the records; upkeep.h keeps them right,
// and no view shows them.
//
//   LU-1  What is kept here is what a search of all records would find.
//   LU-2  Jobs that have ended, and nodes that are lost, are forgotten by a stated limit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "actors/messages/roles.h"
#include "runtime/base/clock.h"
#include "runtime/node/agent_messages.h"
#include "scheduler/fleet/free_room.h"
#include "scheduler/fleet/lifecycle.h"

namespace tandem::controller {

// LU-2. The newest jobs that have ended keep their records while they are no more than this, and
// have no more actors together; of older ones the run directory tells (`tandem get runs`).
inline constexpr std::size_t kEndedJobsKept = 256;
inline constexpr std::size_t kEndedActorsKept = 16'384;
// The newest nodes that are lost, and hold nothing, keep their records.
inline constexpr std::size_t kLostNodesKept = 256;

// The actors of one job that wait, by name.
struct WaitingActors {
  std::set<std::string> queued;  // wait for room: Queued, or in a backoff that is over
  std::set<std::string> fresh;   // of those: ones that schedule() (queue.h) has to look at
  std::set<std::string> lost;    // Queued or in backoff because a node is lost
  // Why those of a role wait that could start: the newest reason. Thousands may wait for one, whose
  // numbers change with every end of a process: their records keep older numbers (upkeep.h).
  std::map<messages::Role, scheduler::Reason> why;
};

struct Lookups {
  using Deadlines = std::set<std::pair<Time, std::string>>;

  // Of each node, the actors of jobs that go on whose newest incarnation has a rank there, or had.
  std::map<std::string, std::set<std::string>> actors_on;
  // When an actor, or a node, is to be looked at. An entry may be out of date.
  Deadlines actor_checks, node_checks;
  Deadlines backoffs;                                       // pauses of actors, until their end
  std::set<std::pair<node::RankId, std::string>> unwanted;  // NodeRecord::unwanted, and its node
  std::set<std::pair<std::int64_t, std::string>> wanting;   // jobs to schedule: order and id
  std::set<std::pair<Time, std::string>> ended;             // jobs that are over, since when
  std::size_t ended_actors = 0;                             // of those jobs
  std::set<std::pair<Time, std::string>> lost;              // nodes that are not up, since when
  scheduler::FreeRoom room;                                 // of the nodes that are up
};

}  // namespace tandem::controller
