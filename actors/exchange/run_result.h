// The text of result.json.
#pragma once

#include <string>

#include "actors/exchange/turn.h"
#include "scheduler/fleet/lifecycle.h"

namespace tandem::exchange {

// The reason with which a job ends, as every view of it shows it. `cause` is the text of JobEnded.
scheduler::Reason reason_of(messages::JobOutcome outcome, const std::string& cause);

std::string result_json(const RunView& view, messages::JobOutcome outcome,
                        const std::string& cause);

}  // namespace tandem::exchange
