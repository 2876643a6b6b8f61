// The actors that work under leases, from their start to their end: they come up, show progress,
// drain and end, and their leases end with them or at a deadline. Which roles those are, and what
// differs between them, is in worker_role.h.
//
//   EX-6  An incarnation that ended is never given work again, however late its messages are.
//   EX-7  No work goes to a rollout that installed other weights than were published, and none of
//         its tokens is taken after that: its incarnation ends.
#pragma once

#include <string>
#include <vector>

#include "actors/exchange/turn.h"

namespace tandem::exchange {

// The first message of an incarnation: it takes work from now on, at most `capacity` at a time.
// `said` names the message.
void come_up(Turn& turn, const messages::Role& role, const ActorId& who, std::int64_t capacity,
             const char* said);

void take(Turn& turn, const messages::Installed& installed);
void take(Turn& turn, messages::RolloutStats stats);
void take(Turn& turn, const messages::DrainActor& drain);
// A silent worker keeps its leases, however long, where no other of its role is here. Where one is,
// its groups are leased to that one, and its answers to the former leases are refused later.
void take(Turn& turn, const messages::ActorSilent& event);
// Takes the end of a worker; for another actor only the incarnation is noted.
void take(Turn& turn, const messages::ActorDown& down);

// Ends a rollout that has, or may have, other weights than were published (EX-7), or that has lost
// its work: its groups are leased again, its later messages are ignored, and its link is cut.
void condemn(Turn& turn, const ActorId& rollout, const std::string& why);

// Takes these groups back from a worker, or everything where the list is empty.
void hand_back(Turn& turn, const WorkerFacts& worker, std::vector<GroupId> groups);
void expire_leases(Turn& turn);
// Ends rollouts that have lost their prompts of evaluations (evaluation_parts.h). No prompt is
// suspected of it: a rollout that hangs with prompts is at work, and the watchdog ends it before.
void end_idle_holders(Turn& turn);
// Takes the leases of silent workers back where another can have them.
void relieve_silent(Turn& turn);
// Lets go of workers that drain and hold nothing, or whose deadline has come.
void finish_drains(Turn& turn);

bool has_ended(const RunFacts& facts, const ActorId& from);
// A holder that makes progress keeps what it holds, however long that takes.
void extend_leases(Turn& turn, const ActorId& holder, Duration lease);

}  // namespace tandem::exchange
