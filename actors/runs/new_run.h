// The directory of a new run: makes one with a number that no run has or had, and removes those
// that a controller which died has left empty.
#pragma once

#include <filesystem>
#include <set>
#include <string>

#include "runtime/base/clock.h"
#include "runtime/base/result.h"

namespace tandem::runs {

// Makes "arith-3" in `runs` for the name "arith", with the first number that no run has or had.
// Making the directory takes the number: of two processes only one makes it.
Result<std::filesystem::path> make_run_directory(const std::filesystem::path& runs,
                                                 const std::string& name, const std::string& yaml);

// A younger directory that is empty may be one that another process makes, since clusters share a
// folder of runs.
inline constexpr Duration kRunIsBeingMade = std::chrono::minutes(1);

// Removes the directories in `runs` that are empty, unless they are young or their ids are `owned`.
void remove_empty_runs(const std::filesystem::path& runs, const std::set<std::string>& owned);

}  // namespace tandem::runs
