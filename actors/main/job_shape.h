// A job as those parts see it that do not know job files: as the controller places it, and as the
// catalogue of runs lists it.
#pragma once

#include <filesystem>

#include "actors/controller/controller_state.h"
#include "actors/job/job_spec.h"
#include "actors/runs/run_catalogue.h"

namespace tandem::app {

// The shape carries the job itself and its text, which both stay as they are. Memory is added by
// add_memory_plan().
controller::JobShape job_shape(const job::JobSpec& job);
// Makes it a job that resumes the run, from its newest checkpoint.
void resume_from(const std::filesystem::path& run, controller::JobShape& shape);

// Read the facts and the keys of a run's job.yaml. They may be called from any thread.
runs::JobReaders job_readers();

}  // namespace tandem::app
