// How much an event of `tandem events` wants to be looked at. Screens mark events by their level
// and never search the message for words: "failed=0" is good news.
#pragma once

#include <cstdint>
#include <string_view>

namespace tandem::messages {

enum class EventLevel : std::uint8_t {
  kInfo,     // the course of things
  kWarning,  // a trouble that the cluster deals with by itself
  kError     // something has failed for good, or was lost
};

const char* name(EventLevel level);  // "info", "warning", "error"
// The level of this name; kInfo for another text, as of events from before there were levels.
EventLevel event_level(std::string_view name);

}  // namespace tandem::messages
