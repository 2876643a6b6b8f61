#include "actors/controller/stopping.h"

#include <utility>

#include "actors/controller/transitions.h"

namespace tandem::controller {

using scheduler::ActorState;
using scheduler::Reason;

namespace {

constexpr std::int64_t kDrainMs = 30'000;  // to finish the work that an actor holds

}  // namespace

void kill(Turn& turn, ActorRecord& actor, Reason why, std::int64_t grace_ms) {
  if (!actor.ending) actor.ending = std::move(why);
  for (std::size_t r = 0; r < actor.ranks.size(); ++r)
    if (actor.ranks[r].alive)
      turn.send(KillRankOn{actor.ranks[r].node,
                           {actor.name, actor.incarnation, static_cast<std::int32_t>(r)},
                           grace_ms});
  if (alive(actor) && actor.status.state != ActorState::kStopping)
    enter(turn, actor, ActorState::kStopping, *actor.ending);
}

void stop_actor(Turn& turn, const JobRecord& job, ActorRecord& actor, Reason why) {
  if (!program_of(job.shape, actor.role)) return kill(turn, actor, std::move(why), kStopGraceMs);
  turn.send(DrainRank{{actor.name, actor.incarnation, 0}, kProgramGraceMs});
  kill(turn, actor, std::move(why), kProgramGraceMs);
}

void drain(Turn& turn, const JobRecord& job, ActorRecord& actor) {
  const Time deadline = turn.now + std::chrono::milliseconds(kDrainMs);
  const bool program = program_of(job.shape, actor.role) != nullptr;
  enter(turn, actor, ActorState::kDraining, scheduler::Draining{0, deadline, program});
  if (!program) {
    turn.send(
        TellExchange{job.id, messages::DrainActor{{actor.name, actor.incarnation}, kDrainMs}});
    return;
  }
  turn.send(DrainRank{{actor.name, actor.incarnation, 0}, kDrainMs});
  turn.send(WakeAt{deadline});
}

void take(Turn& turn, const messages::ActorDrained& drained) {
  ActorRecord* actor = turn.state.actor_of(drained.who);
  if (actor && actor->status.state == ActorState::kDraining)
    kill(turn, *actor, scheduler::ScaleDown{}, kStopGraceMs);
}

}  // namespace tandem::controller
