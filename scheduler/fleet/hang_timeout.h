// The rule by which a process at work counts as hung. It serves the controller, which watches every
// rank, and the ranks of a gang, which watch their rank 0.
//
//   HT-1  An idle process never counts as hung, however long it waits for others.
#pragma once

#include <optional>
#include <string_view>

#include "runtime/base/clock.h"

namespace tandem::scheduler {

inline constexpr Duration kHungAfter = std::chrono::seconds(60);
// A checkpoint may be tens of gigabytes and its disk slow.
inline constexpr Duration kHungAfterInSave = std::chrono::minutes(15);

// How long a process may make no progress in a phase, named as link::Progress names it: "idle",
// "save", or another, each of which is work. nullopt: without limit.
std::optional<Duration> hang_timeout(std::string_view phase);

// Whether a process in `phase`, whose last progress is `still` ago, is to be ended as hung.
bool is_hung(std::string_view phase, Duration still);

}  // namespace tandem::scheduler
