#include "actors/controller/job_end.h"

#include <utility>

#include "actors/controller/stopping.h"
#include "actors/controller/transitions.h"
#include "actors/controller/upkeep.h"
#include "actors/exchange/run_result.h"

namespace tandem::controller {

using scheduler::ActorState;
using scheduler::JobState;
using scheduler::Reason;

namespace {

void stop_job(Turn& turn, JobRecord& job) {
  Reason why = exchange::reason_of(job.outcome->outcome, job.outcome->reason);
  if (job.outcome->outcome == messages::JobOutcome::kSucceeded && !trains(job.shape))
    why = scheduler::Finished{.job = true};
  // A job that is being cancelled may end for another cause.
  enter(turn, job, JobState::kStopping, why);
  for (auto& [actor_id, actor] : job.actors) {
    if (alive(actor))
      stop_actor(turn, job, actor, scheduler::JobEnded{});
    else if (!scheduler::is_final(actor.status.state))
      enter(turn, actor, ActorState::kStopped, scheduler::JobEnded{});
  }
  finish_job_if_gone(turn, job);
}

void job_ended(Turn& turn, JobRecord& job, const messages::JobEnded& ended) {
  if (turn.state.durable.knows(job.id))
    turn.remember(JobOver{job.id, ended.outcome, ended.reason, ended.has_result});
  const bool failed = ended.outcome == messages::JobOutcome::kFailed;
  turn.announce(job, ended.reason,
                failed ? messages::EventLevel::kError : messages::EventLevel::kInfo);
  conclude(turn, job, ended);
}

}  // namespace

void end_job(Turn& turn, JobRecord& job, messages::JobOutcome outcome, const std::string& why) {
  if (job.outcome) return;
  if (trains(job.shape))
    turn.send(TellExchange{job.id, messages::EndJob{outcome, why}});
  else
    job_ended(turn, job, messages::JobEnded{job.id, outcome, why});
}

void conclude(Turn& turn, JobRecord& job, messages::JobEnded outcome) {
  job.outcome = std::move(outcome);
  turn.note_change();
  stop_job(turn, job);
}

void fail_job(Turn& turn, JobRecord& job, const std::string& why) {
  end_job(turn, job, messages::JobOutcome::kFailed, why);
}

void finish_job_if_gone(Turn& turn, JobRecord& job) {
  if (job.status.state != JobState::kStopping) return;
  if (any_lives(job)) return;
  if (has_unwanted(turn.state, job.id)) return;
  const Reason why = job.status.reason;
  switch (job.outcome->outcome) {
    case messages::JobOutcome::kSucceeded:
      enter(turn, job, JobState::kSucceeded, why);
      break;
    case messages::JobOutcome::kFailed:
      enter(turn, job, JobState::kFailed, why);
      break;
    case messages::JobOutcome::kCancelled:
      enter(turn, job, JobState::kCancelled, why);
      break;
  }
  if (!trains(job.shape) || !job.outcome->has_result) turn.send(WriteResult{job.id});
  job.shape.spec.reset();  // it was for the exchange
  turn.send(CloseExchange{job.id});
  leave(turn, job.id);  // last: a job whose result is not written is taken up again
}

void take(Turn& turn, const messages::JobEnded& ended) {
  JobRecord* job = turn.state.job(ended.job);
  if (job && !job->outcome) job_ended(turn, *job, ended);
}

}  // namespace tandem::controller
