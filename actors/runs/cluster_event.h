// An event of a cluster, as `tandem events` lists it: what a controller announced, with its number
// and wall time.
#pragma once

#include <cstdint>
#include <string>

#include "actors/messages/event_level.h"

namespace tandem::actors {

struct ClusterEvent {
  std::int64_t seq = 0;
  std::int64_t time_ms = 0;  // since 1970
  std::string kind, subject, message;
  EventLevel level = EventLevel::kInfo;
};

}  // namespace tandem::actors
