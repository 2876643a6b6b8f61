// `tandem __complete NAMES`: the words that the completion scripts offer and that only the running
// controller, or the table of the job file, knows. NAMES is
//
//   jobs | runs | actors | nodes | targets (jobs and actors)
//   live (jobs that have not ended) | records (jobs, and runs, also without a controller)
//   runs/ (as KIND/NAME, likewise the others) | objects (all of these)
//   keys (of the job file, sections too) | sets (KEY=, for --set)
//
// It answers within kCompletionDeadline or prints nothing: a shell waits for it at each press of
// Tab.
#pragma once

#include <string>
#include <vector>

#include "actors/main/cli/api_client.h"

namespace tandem::app {

inline constexpr const char* kCompleteCommand = "__complete";
inline constexpr Duration kCompletionDeadline = std::chrono::milliseconds(300);

// Sorted, without duplicates, and of letters, digits and "-_./=:" alone: bash's compgen expands
// words, so that a name with `$(...)` would run. Empty for unknown NAMES, and where nothing answers
// in time.
std::vector<std::string> completion_words(const std::string& names,
                                          const std::optional<std::string>& address);

}  // namespace tandem::app
