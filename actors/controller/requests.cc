// Each handler checks the whole request first, and returns the Error, before it changes anything.
// Other parts carry the change out: queue.h starts actors that were added, stopping.h ends those
// that are not wanted any more, job_end.h ends a cancelled job.
#include "actors/controller/requests.h"

#include <string>
#include <utility>
#include <vector>

#include "actors/controller/adoption.h"
#include "actors/controller/allocation.h"
#include "actors/controller/autoscaling.h"
#include "actors/controller/demands.h"
#include "actors/controller/job_end.h"
#include "actors/controller/job_progress.h"
#include "actors/controller/queue.h"
#include "actors/controller/room.h"
#include "actors/controller/stopping.h"
#include "actors/controller/transitions.h"
#include "actors/controller/upkeep.h"
#include "runtime/base/check.h"

namespace tandem::controller {

using scheduler::ActorState;
using scheduler::JobState;

namespace {

constexpr const char* kCancelledByUser = "cancelled by the user";

scheduler::RestartLadder::Policies policies() {
  return {.actor = {}, .role = {.intensity = 3, .period = std::chrono::minutes(30)}};
}

Error no_job(const std::string& id) { return {ErrorCode::kNotFound, "there is no job " + id}; }

Result<JobRecord*> job_to_scale(Turn& turn, const std::string& id) {
  JobRecord* job = turn.state.job(id);
  if (!job) return no_job(id);
  if (scheduler::is_final(job->status.state) || job->status.state == JobState::kStopping)
    return Error{ErrorCode::kFailed,
                 id + " is " + name(job->status.state) + " and cannot be scaled"};
  return job;
}

// A job with all of its actors, which wait for room.
JobRecord& add_job(Turn& turn, const SubmitJob& submit, const Earlier& earlier, JobShape shape,
                   Time created) {
  JobRecord job{.id = submit.id,
                .shape = std::move(shape),
                .run_dir = submit.run_dir,
                .status = {.state = JobState::kQueued, .since = turn.now},
                .created = created,
                .desired = submit.shape.replicas,
                .autoscaling = {.on = submit.shape.autoscale.has_value()},
                .ladder = scheduler::RestartLadder(policies()),
                .submitted = ++turn.state.submitted_last};
  if (trains(job.shape)) job.desired[messages::Role::kLearner] = 1;
  JobRecord& kept = turn.state.jobs.emplace(submit.id, std::move(job)).first->second;
  note_wanting(turn.state, kept);
  JobTaken taken{.job = kept.id,
                 .run_dir = kept.run_dir,
                 .yaml = kept.shape.yaml,
                 .submitted_ms = submit.submitted_ms,
                 .wanted = {},
                 .earlier = earlier};
  for (const auto& [role, replicas] : kept.desired) taken.wanted[name(role)] = replicas;
  turn.remember(std::move(taken));
  for (const messages::Role& role : kept.shape.roles)
    for (std::int32_t i = 0; i < kept.desired[role]; ++i) add_actor(turn, kept, role, i);
  return kept;
}

// A job that has not started ends at once: it has no process, and no exchange.
void cancel_queued(Turn& turn, JobRecord& job) {
  for (auto& [actor_id, actor] : job.actors)
    enter(turn, actor, ActorState::kStopped, scheduler::CancelledByUser{});
  job.outcome = messages::JobEnded{job.id, messages::JobOutcome::kCancelled, kCancelledByUser,
                                   /*has_result=*/false};
  enter(turn, job, JobState::kCancelled, scheduler::CancelledByUser{});
  turn.send(WriteResult{job.id});
  job.shape.spec.reset();  // no exchange will need it
  // Frees the run, which is locked since the job was submitted if it has no exchange to lock it.
  if (job.shape.resume_dir || !trains(job.shape)) turn.send(CloseExchange{job.id});
}

}  // namespace

Result<void> take(Turn& turn, const SubmitJob& submit) {
  ControllerState& state = turn.state;
  Result<JobShape> shape = accepted(state, submit.shape);
  if (!shape) return shape.error();
  if (const JobRecord* known = state.job(submit.id)) {
    if (!scheduler::is_final(known->status.state))
      return Error{ErrorCode::kInvalid, submit.id + " is " + name(known->status.state) + " already",
                   "", "to stop it: tandem cancel " + submit.id};
    forget_job(state, submit.id);  // its run is resumed
  }
  const Earlier earlier{.rows = submit.earlier.rows, .incarnations = state.incarnation_last};
  JobRecord& job = add_job(turn, submit, earlier, *std::move(shape), turn.now);
  note_former(state, job);
  turn.announce(job, "submitted");
  return {};
}

void take(Turn& turn, const TakeUpJobs& taken) {
  CHECK(turn.state.jobs.empty());
  for (const auto& [job, why] : taken.left) {
    turn.send(
        Announce{"job", job,
                 "not taken up: " + why + "; the next controller tries again, unless you cancel it",
                 messages::EventLevel::kError});
    if (turn.state.durable.outcome(job)) leave(turn, job);  // it had ended
  }
  for (const auto& [submit, age, follows] : taken.jobs) {
    JobShape shape = settled(turn.state, submit.shape);
    shape.memory_options.clear();
    Earlier earlier = submit.earlier;
    if (!follows) earlier.incarnations = turn.state.incarnation_last;
    JobRecord& job = add_job(turn, submit, earlier, std::move(shape), turn.now + (-age));
    turn.announce(job, job.shape.resume_dir ? "taken up by a new controller, where it stopped"
                                            : "taken up by a new controller");
    job.follows = follows;
    job.bulk = turn.state.durable.endpoints_of(job.id);
    restore(turn, job);
    restore_allocation(turn, job);
  }
  await_nodes(turn);
}

Result<void> take(Turn& turn, const ScaleRole& scale) {
  const Result<JobRecord*> found = job_to_scale(turn, scale.job);
  if (!found) return found.error();
  JobRecord& job = **found;
  // It is empty where the controller that took the first role of the request has died.
  std::map<messages::Role, std::int32_t>& before = job.autoscaling.before_request;
  if (!scale.continues || before.empty()) before = job.desired;
  if (scale.automatic) return let_autoscale(turn, job, scale.role);
  if (const auto asked = replicas_asked(job.shape, scale.role, std::to_string(scale.replicas));
      !asked)
    return asked.error();
  const bool ends = job.autoscaling.on && scale.role == messages::Role::kRollout;
  std::string text = "scale " + name(scale.role) + "=" + std::to_string(scale.replicas);
  if (ends) text += "; " + autoscale_is_off(job);
  if (const auto done = reallocate(turn, job, {{scale.role, scale.replicas}}, text); !done)
    return done.error();
  if (ends) job.autoscaling.on = false;
  if (job.desired != before) job.autoscaling.before = before;
  keep_allocation(turn, job);
  return {};
}

Result<void> take(Turn& turn, const RollBack& back) {
  const Result<JobRecord*> found = job_to_scale(turn, back.job);
  if (!found) return found.error();
  JobRecord& job = **found;
  if (job.autoscaling.before.empty())
    return Error{ErrorCode::kInvalid,
                 "there is no allocation to go back to: " + back.job +
                     " was not scaled since its start or its last rollback",
                 "", "set numbers by `tandem scale " + back.job + " ROLE=N`"};
  std::map<messages::Role, std::int32_t> changes;
  std::string text = "rolled back";
  for (const auto& [role, replicas] : job.autoscaling.before) {
    if (job.desired.at(role) == replicas) continue;
    text += (changes.empty() ? ": " : ", ") + name(role) + " " +
            std::to_string(job.desired.at(role)) + " -> " + std::to_string(replicas);
    changes[role] = replicas;
  }
  if (job.autoscaling.on) text += "; " + autoscale_is_off(job);
  if (const auto done = reallocate(turn, job, changes, text); !done) return done.error();
  job.autoscaling.on = false;
  job.autoscaling.before.clear();
  keep_allocation(turn, job);
  return {};
}

Result<void> take(Turn& turn, const CancelJob& cancel) {
  JobRecord* job = turn.state.job(cancel.job);
  const bool known = job || turn.state.durable.knows(cancel.job);
  if (!known) return no_job(cancel.job);
  leave(turn, cancel.job);
  if (!job) return {};  // it could not be taken up
  if (scheduler::is_final(job->status.state) || job->outcome) return {};
  turn.announce(*job, kCancelledByUser);
  if (job->status.state == JobState::kQueued)
    cancel_queued(turn, *job);
  else
    end_job(turn, *job, messages::JobOutcome::kCancelled, kCancelledByUser);
  return {};
}

// A job of an earlier controller has no record here, and its run may be deleted all the same.
Result<void> take(Turn& turn, const ForgetJob& forget) {
  const JobRecord* job = turn.state.job(forget.job);
  if (!job) {
    leave(turn, forget.job);
    return {};
  }
  if (!scheduler::is_final(job->status.state))
    return Error{ErrorCode::kInvalid, forget.job + " is " + name(job->status.state), "",
                 "cancel it first: tandem cancel " + forget.job};
  turn.announce(*job, "its run was deleted");
  forget_job(turn.state, forget.job);
  return {};
}

}  // namespace tandem::controller
