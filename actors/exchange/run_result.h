// The text of result.json.
#pragma once

#include <string>

#include "actors/exchange/turn.h"

namespace tandem::actors {

std::string result_json(const RunView& view, JobOutcome outcome);

}  // namespace tandem::actors
