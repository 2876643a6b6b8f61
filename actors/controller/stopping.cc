#include "actors/controller/stopping.h"

#include <algorithm>
#include <utility>

#include "actors/controller/transitions.h"
#include "actors/controller/upkeep.h"

namespace tandem::controller {

using scheduler::ActorState;
using scheduler::Reason;

namespace {

constexpr std::int64_t kDrainMs = 30'000;  // to finish the work that an actor holds
// Less than kPreemptionGrace, so that the actor ends before it is ended.
constexpr std::int64_t kDrainPreemptedMs = 20'000;
// To end the step and to save a checkpoint, which takes a large model minutes.
constexpr std::int64_t kDrainLearnerMs = 600'000;

scheduler::DrainedWork work_of(const JobRecord& job, const ActorRecord& actor) {
  if (program_of(job.shape, actor.role)) return scheduler::DrainedWork::kQuestions;
  return actor.role == messages::Role::kLearner ? scheduler::DrainedWork::kStep
                                                : scheduler::DrainedWork::kGroups;
}

// The outcome of a job is remembered by itself.
void remember_leaving(Turn& turn, const ActorRecord& actor, const Reason& why) {
  const auto known = turn.state.durable.actors().find(actor.name);
  const JobRecord& job = turn.state.jobs.at(actor.job);
  if (known == turn.state.durable.actors().end() || known->second.leaves || job.outcome) return;
  ActorLeaves leaves{
      .actor = actor.name, .incarnation = actor.incarnation, .node = actor.moved_off};
  if (!actor.moved_off.empty())
    leaves.why = Leaving::kMoved;
  else if (actor.preempted)
    leaves.why = Leaving::kPreempted;
  else if (!std::holds_alternative<scheduler::ScaleDown>(why))
    leaves.why = Leaving::kRestarted;
  turn.remember(std::move(leaves));
}

}  // namespace

void kill(Turn& turn, ActorRecord& actor, Reason why, std::int64_t grace_ms) {
  remember_leaving(turn, actor, why);
  if (!actor.ending) actor.ending = std::move(why);
  const Time killed_at = turn.now + std::chrono::milliseconds(grace_ms);
  const bool is_stopping = actor.status.state == ActorState::kStopping;
  actor.kill_deadline = is_stopping ? std::min(actor.kill_deadline, killed_at) : killed_at;
  bool unheard = false;
  for (std::size_t r = 0; r < actor.ranks.size(); ++r) {
    RankRecord& rank = actor.ranks[r];
    if (!rank.alive) continue;
    rank.end_unheard = rank.end_unheard || !turn.state.has_agent(rank.node);
    unheard = unheard || rank.end_unheard;
    turn.send(KillRankOn{
        rank.node, {actor.name, actor.incarnation, static_cast<std::int32_t>(r)}, grace_ms});
  }
  if (unheard) {  // its job may be over by now (ranks.cc)
    actor.report_deadline = turn.now + std::chrono::milliseconds(kStopGraceMs);
    check_at(turn, actor, actor.report_deadline);
  }
  if (alive(actor) && !is_stopping) enter(turn, actor, ActorState::kStopping, *actor.ending);
}

void stop_actor(Turn& turn, const JobRecord& job, ActorRecord& actor, Reason why) {
  if (!program_of(job.shape, actor.role)) return kill(turn, actor, std::move(why), kStopGraceMs);
  turn.send(DrainRank{{actor.name, actor.incarnation, 0}, kProgramGraceMs});
  kill(turn, actor, std::move(why), kProgramGraceMs);
}

void drain(Turn& turn, const JobRecord& job, ActorRecord& actor) {
  const scheduler::DrainedWork work = work_of(job, actor);
  std::int64_t limit_ms = work == scheduler::DrainedWork::kStep ? kDrainLearnerMs : kDrainMs;
  if (actor.preempted) limit_ms = kDrainPreemptedMs;
  const Time deadline = turn.now + std::chrono::milliseconds(limit_ms);
  remember_leaving(turn, actor, why_drained(actor));
  enter(turn, actor, ActorState::kDraining, scheduler::Draining{0, deadline, work});
  if (work != scheduler::DrainedWork::kQuestions) {
    turn.send(TellExchange{job.id, messages::DrainActor{.who = {actor.name, actor.incarnation},
                                                        .deadline_ms = limit_ms,
                                                        .returns = wanted(job, actor)}});
    return;
  }
  turn.send(DrainRank{{actor.name, actor.incarnation, 0}, limit_ms});
  check_at(turn, actor, deadline);
}

void stays_away(Turn& turn, const JobRecord& job, const ActorRecord& actor) {
  if (work_of(job, actor) == scheduler::DrainedWork::kGroups && actor.incarnation.value > 0)
    turn.send(TellExchange{job.id, messages::DrainActor{.who = {actor.name, actor.incarnation}}});
}

Reason why_drained(const ActorRecord& actor) {
  if (actor.preempted) return scheduler::Preempted{};
  if (actor.moved_off.empty()) return scheduler::ScaleDown{};
  return scheduler::NodeDrained{actor.moved_off};
}

void take(Turn& turn, const messages::ActorDrained& drained) {
  ActorRecord* actor = turn.state.actor_of(drained.who);
  if (actor && actor->status.state == ActorState::kDraining)
    kill(turn, *actor, why_drained(*actor), kStopGraceMs);
}

void take(Turn& turn, const messages::RankPreempted& preempted) {
  ActorRecord* actor = turn.state.actor_of({preempted.actor, preempted.incarnation});
  if (!actor) return;
  const JobRecord& job = *turn.state.job_of(preempted.actor);
  const ActorState state = actor->status.state;
  const bool begins = state == ActorState::kStarting || state == ActorState::kInitializing;
  const bool works = state == ActorState::kReady || state == ActorState::kBusy;
  if (!job.shape.preemptible.contains(actor->role) || actor->ending || (!begins && !works)) return;
  actor->preempted = true;
  if (begins) {  // it has no work to hand back
    turn.announce(*actor, "is preempted before it is ready", messages::EventLevel::kWarning);
    return stop_actor(turn, job, *actor, scheduler::Preempted{});
  }
  turn.announce(*actor, "is preempted: it gets no more work, and hands back what it cannot finish",
                messages::EventLevel::kWarning);
  drain(turn, job, *actor);
}

}  // namespace tandem::controller
