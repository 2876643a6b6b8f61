// The troubles of a job's reward programs, or of one actor's, as `why` and `describe` show them.
#pragma once

#include <string>

#include "runtime/base/json.h"

namespace tandem::cli {

// A block of lines for each of item["troubles"], never cut to a width: a program's own words are
// what the reader needs whole. Empty where there are none.
std::string trouble_lines(const nlohmann::json& item);

}  // namespace tandem::cli
