// For tests of a controller that follows one that died: the jobs that it finds.
#pragma once

#include <chrono>

#include "tests/actors/controller/controller_world.h"

namespace tandem::controller {

// The jobs that a later controller takes up, with as many actors as were wanted last. Their shapes
// are those of the earlier one: here no job file is read again.
inline TakeUpJobs jobs_of(const World& before) {
  TakeUpJobs taken;
  for (const JobTaken& job : before.remembered.jobs()) {
    JobShape shape = before.core.jobs().at(job.job).shape;
    for (auto& [role, replicas] : shape.replicas) replicas = job.wanted.at(name(role));
    shape.resume_dir = job.run_dir;
    taken.jobs.push_back(
        {{shape, job.job, job.run_dir, job.submitted_ms, job.earlier}, std::chrono::seconds(90)});
  }
  return taken;
}

}  // namespace tandem::controller
