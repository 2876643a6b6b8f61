// One event of a trace in the Trace Event Format, which Chromium's tracing and Perfetto open, and
// its text. Not responsible for the meaning of rows (trace_rows.h) and for bounds (trace_window.h).
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace tandem::timeline {

// Microseconds since 1970 where a time comes from the journal, and since the trace's zero in an
// event.
using TraceTime = std::int64_t;
inline TraceTime from_ms(std::int64_t milliseconds) { return milliseconds * 1000; }

// The letters are the format's.
enum class TracePhase : char {
  kSpan = 'X',
  kBegin = 'b',  // of an asynchronous span, whose end has the same category and id
  kEnd = 'e',
  kInstant = 'i',
  kCounter = 'C',
  kMetadata = 'M',
};

// A viewer draws a row for each thread, and puts the rows of a process together.
struct TraceRow {
  std::int64_t process = 0, thread = 0;
};

struct TraceArgument {
  const char* key;
  std::variant<std::int64_t, double, std::string> value;
};
using TraceArguments = std::vector<TraceArgument>;

struct TraceEvent {
  TracePhase phase = TracePhase::kSpan;
  std::string name;
  const char* category = "";
  TraceRow row = {};
  TraceTime at = 0, lasts = 0;
  std::uint64_t id = 0;  // of an asynchronous span
  TraceArguments arguments = {};
};

// Appends the event as one JSON object without a newline. A number that is not finite is null.
void append_json(const TraceEvent& event, std::string& text);

}  // namespace tandem::timeline
