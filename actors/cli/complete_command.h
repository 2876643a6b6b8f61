// `tandem __complete NAMES`: the words that the completion scripts offer and that only the running
// controller, or the table of the job file, knows. NAMES is
//
//   jobs | runs | actors | nodes | live (jobs that have not ended)
//   records (jobs and runs) | targets (also actors) | logs (also the actors of past runs)
//   known_actors (actors, also those of past runs) | models (checkpoints of runs, as paths)
//   runs/ (as KIND/NAME, likewise the others) | objects (all of these)
//   keys (of the job file, sections too) | sets (KEY=, for --set)
//
// Runs, and actors of past runs by their log files, are known without a controller too. A past run
// is one that is no job of the controller any more.
//
// It answers within kCompletionDeadline or prints nothing: a shell waits for it at each press of
// Tab.
#pragma once

#include <string>
#include <vector>

#include "actors/cli/api_client.h"

namespace tandem::cli {

inline constexpr const char* kCompleteCommand = "__complete";
inline constexpr Duration kCompletionDeadline = std::chrono::milliseconds(300);

// Sorted, without duplicates, and of letters, digits and "-_./=:" alone: bash's compgen expands
// words, so that a name with `$(...)` would run. Empty for unknown NAMES, and where nothing answers
// in time.
std::vector<std::string> completion_words(const std::string& names,
                                          const std::optional<std::string>& address);

}  // namespace tandem::cli
