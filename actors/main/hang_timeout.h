// How long a process at work may make no progress before it counts as hung. One rule for the
// controller, which watches every rank, and for the ranks of a gang, which watch their rank 0.
#pragma once

#include <optional>
#include <string_view>

#include "runtime/base/clock.h"

namespace tandem::cli {

// The limit for a phase as runtime::Progress names it; nullopt: no limit, since an idle process
// waits for others. A save has more time: a checkpoint may be tens of gigabytes and its disk slow.
inline std::optional<Duration> hang_timeout(std::string_view phase) {
  if (phase == "idle") return std::nullopt;
  return phase == "save" ? Duration(std::chrono::minutes(15)) : std::chrono::seconds(60);
}

}  // namespace tandem::cli
