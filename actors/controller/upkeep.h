// Keeps the lookups (lookups.h) as the records are, and searches in them. Called by the parts that
// change records: transitions.h, queue.h, adoption.h, unwanted.h, nodes.h; room.h keeps the room.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>

#include "actors/controller/turn.h"

namespace tandem::controller {

// The actor's ranks have places, or have them no more. Called before and after the places change.
void add_places(ControllerState& state, const ActorRecord& actor);
void remove_places(ControllerState& state, const ActorRecord& actor);
// The names of the actors on the node, as they are now.
std::set<std::string> actors_on(const ControllerState& state, const std::string& node);
// Those that are queued have to be looked at: the node of their last incarnation came or went.
void look_again_on(ControllerState& state, const std::string& node);

// Whether processes of the job are left on nodes that nobody wants (NodeRecord::unwanted).
bool has_unwanted(const ControllerState& state, const std::string& job);
// The node on which a process of a former incarnation of the actor is told to end, and lives.
std::optional<std::string> node_of_unwanted(const ControllerState& state, const std::string& actor);

// The actor is to be looked at by the Tick at that time (ranks.h), which this asks for.
void check_at(Turn& turn, const ActorRecord& actor, Time when);
// Those with a process on the node: by the next Tick, where their time has come.
void check_actors_on(ControllerState& state, const std::string& node);
// Takes out those whose time has come, each once.
std::set<std::string> due(Lookups::Deadlines& deadlines, Time now);

// Places were given: `by` ranks of the role live more.
void count_living(JobRecord& job, const messages::Role& role, std::int32_t by);
bool any_lives(const JobRecord& job);
bool any_lives(const JobRecord& job, const messages::Role& role);

// The state or the reason of an actor has changed, or it is new. `before`: its former state.
void note_waiting(ControllerState& state, JobRecord& job, const ActorRecord& actor,
                  std::optional<scheduler::ActorState> before);
void drop_waiting(ControllerState& state, JobRecord& job, const ActorRecord& actor);
// Whether schedule() has to look at the job.
void note_wanting(ControllerState& state, const JobRecord& job);
// The job is over: `ended` has it from now on.
void note_ended(ControllerState& state, const JobRecord& job);
// Erases the record of a job that is over, and of its actors.
void forget_job(ControllerState& state, const std::string& job);

// LU-2. Called before an event is taken, since the effects of an event may name the records.
void forget_old_jobs(ControllerState& state);
void forget_lost_nodes(Turn& turn);

// The reason for which an actor waits, with the newest numbers.
const scheduler::Reason& reason_shown(const JobRecord& job, const ActorRecord& actor);
// Gives the actors of a copied record the reasons that are shown.
void show_reasons(JobRecord& copy);

}  // namespace tandem::controller
