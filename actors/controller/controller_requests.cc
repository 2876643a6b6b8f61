// Handlers of what users ask for: submit, scale, cancel, forget. Only these can fail, and one that
// fails changes nothing.
#include <algorithm>
#include <utility>

#include "actors/controller/controller_core.h"

namespace tandem::controller {

using scheduler::ActorState;
using scheduler::JobState;

namespace {

constexpr const char* kCancelledByUser = "cancelled by the user";

scheduler::RestartLadder::Policies policies() {
  return {.actor = {}, .role = {.intensity = 3, .period = std::chrono::minutes(30)}};
}

// "rollout=N, reward=N": the roles of the job that can be scaled.
std::string scalable(const JobShape& shape) {
  std::string list;
  for (const messages::Role& role : shape.roles)
    if (role != messages::Role::kLearner) list += (list.empty() ? "" : ", ") + name(role) + "=N";
  return list;
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

Result<void> ControllerCore::on(const SubmitJob& submit) {
  Result<JobShape> shape = accepted(submit.shape);
  if (!shape) return shape.error();
  if (const auto known = jobs_.find(submit.id); known != jobs_.end()) {
    if (!scheduler::is_final(known->second.status.state))
      return Error{ErrorCode::kInvalid,
                   submit.id + " is " + name(known->second.status.state) + " already", "",
                   "to stop it: tandem cancel " + submit.id};
    jobs_.erase(known);  // its run is resumed
  }
  JobRecord job{.id = submit.id,
                .shape = *std::move(shape),
                .run_dir = submit.run_dir,
                .status = {.state = JobState::kQueued, .since = now_},
                .created = now_,
                .desired = submit.shape.replicas,
                .ladder = scheduler::RestartLadder(policies()),
                .submitted = ++submitted_last_};
  if (trains(job.shape)) job.desired[messages::Role::kLearner] = 1;
  JobRecord& kept = jobs_.emplace(submit.id, std::move(job)).first->second;
  for (const messages::Role& role : kept.shape.roles)
    for (std::int32_t i = 0; i < kept.desired[role]; ++i) add_actor(kept, role, i);
  effects_.push_back(Announce{"job", submit.id, "submitted"});
  return {};
}

Result<void> ControllerCore::on(const ScaleRole& scale) {
  const auto it = jobs_.find(scale.job);
  if (it == jobs_.end()) return Error{ErrorCode::kNotFound, "there is no job " + scale.job};
  JobRecord& job = it->second;
  if (scheduler::is_final(job.status.state) || job.status.state == JobState::kStopping)
    return Error{ErrorCode::kFailed,
                 scale.job + " is " + name(job.status.state) + " and cannot be scaled"};
  if (const auto asked = replicas_asked(job.shape, scale.role, std::to_string(scale.replicas));
      !asked)
    return asked.error();
  JobShape shape = as_placed(job.shape);
  shape.replicas = job.desired;
  shape.replicas[scale.role] = scale.replicas;
  if (const auto fits = can_ever_run(shape); !fits) return fits.error();
  job.desired[scale.role] = scale.replicas;
  effects_.push_back(
      Announce{"job", job.id, "scale " + name(scale.role) + "=" + std::to_string(scale.replicas)});
  for (std::int32_t i = 0; i < scale.replicas; ++i)
    if (!job.actors.contains(actor_name(job.id, scale.role, i))) add_actor(job, scale.role, i);
  scale_down(job, scale.role);
  count_ready(job);
  count_finished(job);
  return {};
}

// Ends the actors that are not wanted any more. One that has a process goes when that has ended
// (actor_gone); the others go at once.
void ControllerCore::scale_down(JobRecord& job, const messages::Role& role) {
  std::vector<std::string> gone;
  for (auto& [actor_id, actor] : job.actors) {
    if (actor.role != role || wanted(job, actor)) continue;
    switch (actor.status.state) {
      case ActorState::kReady:
      case ActorState::kBusy:
        drain(job, actor);
        break;
      case ActorState::kStarting:
      case ActorState::kInitializing:
        stop_actor(job, actor, scheduler::ScaleDown{});
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
    remove_actor(job, actor);
    ++changes_;
  }
}

Result<void> ControllerCore::on(const CancelJob& cancel) {
  const auto it = jobs_.find(cancel.job);
  if (it == jobs_.end()) return Error{ErrorCode::kNotFound, "there is no job " + cancel.job};
  JobRecord& job = it->second;
  if (scheduler::is_final(job.status.state) || job.outcome) return {};
  effects_.push_back(Announce{"job", job.id, kCancelledByUser});
  if (job.status.state == JobState::kQueued) {
    for (auto& [actor_id, actor] : job.actors)
      set(actor, ActorState::kStopped, scheduler::CancelledByUser{});
    job.outcome = messages::JobEnded{job.id, messages::JobOutcome::kCancelled, kCancelledByUser,
                                     /*has_result=*/false};
    set(job, JobState::kCancelled, scheduler::CancelledByUser{});
    effects_.push_back(WriteResult{job.id});
    // Frees the run, which is locked since the job was submitted if it has no exchange to lock it.
    if (job.shape.resume_dir || !trains(job.shape)) effects_.push_back(CloseExchange{job.id});
    return {};
  }
  end_job(job, messages::JobOutcome::kCancelled, kCancelledByUser);
  return {};
}

// A job of an earlier controller has no record here, and its run may be deleted all the same.
Result<void> ControllerCore::on(const ForgetJob& forget) {
  const auto it = jobs_.find(forget.job);
  if (it == jobs_.end()) return {};
  if (!scheduler::is_final(it->second.status.state))
    return Error{ErrorCode::kInvalid, forget.job + " is " + name(it->second.status.state), "",
                 "cancel it first: tandem cancel " + forget.job};
  jobs_.erase(it);
  effects_.push_back(Announce{"job", forget.job, "its run was deleted"});
  return {};
}

}  // namespace tandem::controller
