// The outcome of a job without an exchange, for its result.json. Pure.
#pragma once

#include <string>

#include "actors/controller/controller_state.h"

namespace tandem::actors {

// The text of result.json of a job of actors alone, which has ended.
std::string result_json(const JobRecord& job, Time now);

}  // namespace tandem::actors
