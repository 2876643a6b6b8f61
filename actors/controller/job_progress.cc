#include "actors/controller/job_progress.h"

#include "actors/controller/job_end.h"
#include "actors/controller/transitions.h"

namespace tandem::controller {

using scheduler::JobState;

// A job of actors alone runs once each of them is ready, or has been. Called for every actor that
// comes up, so it counts none anew.
void count_ready(Turn& turn, JobRecord& job) {
  if (job.status.state != JobState::kStarting) return;
  const auto count = static_cast<std::int32_t>(job.actors.size());
  if (!trains(job.shape) && job.ready + job.stopped == count)
    return enter(turn, job, JobState::kRunning, scheduler::Working{});
  enter(turn, job, JobState::kStarting, scheduler::WaitingForActors{job.ready, count});
}

// A job without actors waits for a user to scale it.
void count_finished(Turn& turn, JobRecord& job) {
  if (trains(job.shape) || job.outcome || job.actors.empty()) return;
  if (job.stopped == std::ssize(job.actors))
    end_job(turn, job, messages::JobOutcome::kSucceeded,
            "all of its actors have ended with code 0");
}

void take(Turn& turn, const ExchangeOpened& opened) {
  if (turn.state.durable.knows(opened.job)) turn.remember(JobServes{opened.job, opened.endpoints});
}

void take(Turn& turn, const messages::JobProgress& progress) {
  JobRecord* job = turn.state.job(progress.job);
  if (!job || job->outcome) return;
  job->message = progress.message;
  turn.announce(*job, progress.message);
  const JobState from = job->status.state;
  if (progress.phase == messages::JobPhase::kWarmStart &&
      scheduler::allowed(from, JobState::kWarmStart))
    enter(turn, *job, JobState::kWarmStart, scheduler::Working{});
  if (progress.phase == messages::JobPhase::kRunning &&
      scheduler::allowed(from, JobState::kRunning))
    enter(turn, *job, JobState::kRunning, scheduler::Working{});
  if (progress.phase == messages::JobPhase::kStopping &&
      scheduler::allowed(from, JobState::kStopping))
    enter(turn, *job, JobState::kStopping, scheduler::CancelledByUser{});
}

}  // namespace tandem::controller
