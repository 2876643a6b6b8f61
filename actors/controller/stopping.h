// How an actor is ended: at once, within a few seconds, or after its work. The functions only ask
// agents, exchanges and programs; actor_end.h hears that the processes have ended, and acts then.
#pragma once

#include <cstdint>

#include "actors/controller/turn.h"

namespace tandem::controller {

// The time from SIGTERM to SIGKILL. A program may have questions to answer before it ends.
inline constexpr std::int64_t kStopGraceMs = 3000;
inline constexpr std::int64_t kProgramGraceMs = 10'000;

// Ends the processes of an actor. The first reason stays, unless a rank's end explains it better.
void kill(Turn& turn, ActorRecord& actor, scheduler::Reason why, std::int64_t grace_ms);
// Ends an actor within a few seconds; a program may first answer what it has been asked.
void stop_actor(Turn& turn, const JobRecord& job, ActorRecord& actor, scheduler::Reason why);
// Lets an actor finish its work before it ends. A training actor is drained by its exchange, a
// program by a message.
void drain(Turn& turn, const JobRecord& job, ActorRecord& actor);
// Tells the exchange that an actor which is not at work now is not wanted any more, so that it does
// not wait for its return. Nothing is told of one that was never started.
void stays_away(Turn& turn, const JobRecord& job, const ActorRecord& actor);
// Why an actor that drains ends: its role was scaled down, or it is moved off its node.
scheduler::Reason why_drained(const ActorRecord& actor);

void take(Turn& turn, const messages::ActorDrained& drained);
// The actor is drained within the time that it has, or ends at once where it is not ready yet; the
// next incarnation follows (actor_end.h).
void take(Turn& turn, const messages::RankPreempted& preempted);

}  // namespace tandem::controller
