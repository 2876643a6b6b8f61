// The troubles of a job's reward programs, or of those of one actor, as `why` and `describe` show
// them: failures of a user's program that have been reported (actors/exchange/reward_troubles.h).
// And the alerts of a job or of the cluster (actors/api/alert_rules.h).
#pragma once

#include <string>

#include "runtime/base/json.h"

namespace tandem::cli {

// A block of lines for each of item["troubles"], never cut to a width, since the reader needs the
// program's own words whole. Empty where there are none.
std::string trouble_lines(const nlohmann::json& item);
// Two lines for each of item["alerts"]: what is wrong since when, and what to do.
std::string alert_lines(const nlohmann::json& item);

}  // namespace tandem::cli
