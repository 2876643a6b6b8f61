#include "scheduler/fleet/hang_timeout.h"

namespace tandem::scheduler {

std::optional<Duration> hang_timeout(std::string_view phase) {
  if (phase == "idle") return std::nullopt;
  return phase == "save" ? kHungAfterInSave : kHungAfter;
}

bool is_hung(std::string_view phase, Duration still) {
  const std::optional<Duration> allowed = hang_timeout(phase);
  return allowed && still >= *allowed;
}

}  // namespace tandem::scheduler
