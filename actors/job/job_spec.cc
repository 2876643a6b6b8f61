// The values of a job that follow from two keys, where one of them may be null.
#include "actors/job/job_spec.h"

#include <algorithm>

#include "scheduler/fleet/staleness.h"

namespace tandem::job {

// A job that trains has a model: `model.path` is required.
bool trains(const JobSpec& job) { return job.actors.empty() || !job.model.path.empty(); }

bool has_tracker(const JobSpec& job, TrackerName tracker) {
  return std::ranges::find(job.trackers, spelling(tracker)) != job.trackers.end();
}

std::int64_t updates_per_batch(const JobSpec& job) {
  const std::int64_t batch = job.data.train_batch_size;
  return job.learner.ppo_epochs * (batch / job.learner.ppo_mini_batch_size.value_or(batch));
}

std::int64_t lookahead(const AsyncSpec& async) {
  return async.lookahead.value_or(scheduler::default_lookahead(async.max_staleness));
}

}  // namespace tandem::job
