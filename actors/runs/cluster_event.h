// An event of a cluster, as `tandem events` lists it: what a controller announced, with its number
// and wall time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "actors/messages/event_level.h"

namespace tandem::runs {

struct ClusterEvent {
  std::int64_t seq = 0;
  std::int64_t time_ms = 0;  // since 1970
  std::string kind, subject, message;
  messages::EventLevel level = messages::EventLevel::kInfo;
};

inline constexpr std::size_t kEventsDefault = 10'000, kEventsMax = 100'000;

struct EventQuery {
  std::optional<std::int64_t> since;   // only those with a higher number
  std::size_t limit = kEventsDefault;  // so many of the newest; with `since`, of the first after it
};

// Whether an event is about the job or one of its actors. "arith-1" is not a part of "arith-12".
inline bool is_of_job(const ClusterEvent& event, const std::string& job) {
  return event.subject == job || event.subject.starts_with(job + "/");
}

}  // namespace tandem::runs
