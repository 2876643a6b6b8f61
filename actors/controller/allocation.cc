#include "actors/controller/allocation.h"

#include <vector>

#include "actors/controller/demands.h"
#include "actors/controller/job_progress.h"
#include "actors/controller/room.h"
#include "actors/controller/stopping.h"
#include "actors/controller/transitions.h"
#include "scheduler/fleet/placement.h"

namespace tandem::controller {

using scheduler::ActorState;

namespace {

// "rollout=N, reward=N": the roles of the job that can be scaled.
std::string scalable(const JobShape& shape) {
  std::string list;
  for (const messages::Role& role : shape.roles)
    if (role != messages::Role::kLearner) list += (list.empty() ? "" : ", ") + name(role) + "=N";
  return list;
}

// Ends the actors that are not wanted any more. One that has a process goes when that has ended
// (actor_end.h); the others go at once.
void scale_down(Turn& turn, JobRecord& job, const messages::Role& role) {
  std::vector<std::string> gone;
  for (auto& [actor_id, actor] : job.actors) {
    if (actor.role != role || wanted(job, actor)) continue;
    const bool works =
        actor.status.state == ActorState::kReady || actor.status.state == ActorState::kBusy;
    if (!works) stays_away(turn, job, actor);
    switch (actor.status.state) {
      case ActorState::kReady:
      case ActorState::kBusy:
        drain(turn, job, actor);
        break;
      case ActorState::kStarting:
      case ActorState::kInitializing:
        stop_actor(turn, job, actor, scheduler::ScaleDown{});
        break;
      case ActorState::kQueued:
      case ActorState::kPlacing:
      case ActorState::kBackoff:
      case ActorState::kStopped:  // a program that has finished
        gone.push_back(actor_id);
        break;
      case ActorState::kDraining:
      case ActorState::kStopping:
      case ActorState::kFailed:
      case ActorState::kLost:
        break;
    }
  }
  for (const std::string& actor : gone) {
    if (const auto finished = turn.state.durable.actors().find(actor);
        finished != turn.state.durable.actors().end())
      turn.remember(ActorEnded{.actor = actor,
                               .incarnation = finished->second.started.incarnation,
                               .how = ActorEnd::kDropped});
    remove_actor(turn, job, actor);
    turn.note_change();
  }
}

}  // namespace

Result<std::int32_t> replicas_asked(const JobShape& shape, const messages::Role& role,
                                    std::string_view count) {
  if (!has_role(shape, role))
    return Error{
        ErrorCode::kInvalid,
        "cannot scale " + name(role) + " to " + std::string(count) + ": the job has no such role",
        "", "possible: " + scalable(shape)};
  if (role == messages::Role::kLearner)
    return Error{ErrorCode::kInvalid, "the learner of a running job cannot be scaled", "",
                 "submit it with another learner.ranks"};
  const auto bounds =
      program_of(shape, role) ? scheduler::kProgramReplicas : scheduler::kTrainingReplicas;
  return scheduler::replicas_of(name(role), count, bounds);
}

Result<void> reallocate(Turn& turn, JobRecord& job,
                        const std::map<messages::Role, std::int32_t>& changes,
                        const std::string& text) {
  JobShape shape = as_wanted(job);
  for (const auto& [role, replicas] : changes) shape.replicas[role] = replicas;
  if (const auto fits = can_ever_run(turn.state, shape); !fits) return fits.error();
  turn.announce(job, text);
  for (const auto& [role, replicas] : changes) {
    job.desired[role] = replicas;
    turn.remember(RoleScaled{job.id, role, replicas});
    for (std::int32_t i = 0; i < replicas; ++i)
      if (!job.actors.contains(actor_name(job.id, role, i))) add_actor(turn, job, role, i);
    scale_down(turn, job, role);
  }
  count_ready(turn, job);
  count_finished(turn, job);
  return {};
}

}  // namespace tandem::controller
