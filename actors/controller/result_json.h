// The outcome of a job without an exchange, for its result.json: of a job of actors alone, or of
// one that ended before its exchange had opened. Pure.
#pragma once

#include <string>

#include "actors/controller/controller_state.h"

namespace tandem::actors {

// The text of result.json of such a job, which has ended.
std::string result_json(const JobRecord& job, Time now);

}  // namespace tandem::actors
