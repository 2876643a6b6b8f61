// The outcome of a job without an exchange, for its result.json: of a job of actors alone, or of
// one that ended before its exchange had opened. A job that was to resume a run leaves that run's
// result.json as it is, and has its outcome in resume.json beside it until the run goes on. Pure.
#pragma once

#include <string>

#include "actors/controller/controller_state.h"

namespace tandem::controller {

// The name of the file in the run directory that takes the outcome of such a job.
const char* outcome_file(const JobRecord& job);
// The text of that file, once the job has ended.
std::string result_json(const JobRecord& job, Time now);

}  // namespace tandem::controller
