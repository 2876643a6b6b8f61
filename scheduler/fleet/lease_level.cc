#include "scheduler/fleet/lease_level.h"

#include <algorithm>

namespace tandem::scheduler {

bool goes_rather_to(const LeaseCandidate& one, const LeaseCandidate& other) {
  return one.room > other.room || (one.room == other.room && other.awaited && !one.awaited);
}

std::optional<Time> LevelWait::installed(PolicyVersion version, Duration took, Time now) {
  if (version <= version_) return std::nullopt;
  version_ = version;
  until_ = now + std::clamp(took, kLevelWaitLeast, kLevelWaitMost);
  return until_;
}

bool LevelWait::waits(PolicyVersion version, Time now) const {
  return version == version_ && now < until_;
}

}  // namespace tandem::scheduler
