#include "actors/messages/event_level.h"

namespace tandem::messages {

const char* name(EventLevel level) {
  switch (level) {
    case EventLevel::kInfo:
      return "info";
    case EventLevel::kWarning:
      return "warning";
    case EventLevel::kError:
      return "error";
  }
  return "";
}

EventLevel event_level(std::string_view text) {
  for (const EventLevel level : {EventLevel::kWarning, EventLevel::kError})
    if (text == name(level)) return level;
  return EventLevel::kInfo;
}

}  // namespace tandem::messages
