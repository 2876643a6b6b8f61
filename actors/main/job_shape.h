// The job as the controller places it.
#pragma once

#include <filesystem>

#include "actors/controller/controller_state.h"
#include "actors/job/job_spec.h"

namespace tandem::app {

// Roles, actors, ranks, CPUs, GPUs and strategies. Memory is added by add_memory_plan(), yaml and
// the run to resume by the caller.
controller::JobShape job_shape(const job::JobSpec& job);
// Makes it a job that resumes the run, from its newest checkpoint.
void resume_from(const std::filesystem::path& run, controller::JobShape& shape);

}  // namespace tandem::app
