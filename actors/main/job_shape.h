// The job as the controller places it.
#pragma once

#include "actors/controller/controller_state.h"
#include "actors/main/job/job_spec.h"

namespace tandem::app {

// Roles, actors, ranks, CPUs, GPUs and strategies. Memory is added by add_memory_plan(), yaml and
// resume_dir by the caller.
actors::JobShape job_shape(const JobSpec& job);

}  // namespace tandem::app
