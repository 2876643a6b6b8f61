// The part of a run that a trace shows, and where its events go: everything is cut at the bounds,
// moved to the trace's zero, and counted.
//
//   TL-1  No event lies outside the bounds.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <utility>

#include "actors/timeline/trace_event.h"

namespace tandem::timeline {

// Both ends are included.
struct TraceRange {
  TraceTime first = 0;
  TraceTime last = std::numeric_limits<TraceTime>::max();
};

class TraceWindow {
 public:
  using Emit = std::function<void(const TraceEvent&)>;
  // `zero` is the time that the trace calls 0.
  TraceWindow(TraceRange range, TraceTime zero, Emit emit)
      : range_(range), zero_(zero), emit_(std::move(emit)) {}

  // The times of the events below are these arguments, since 1970; those in `event` are set here.
  void span(TraceEvent event, TraceTime from, TraceTime to);
  void instant(TraceEvent event, TraceTime at);
  void counter(TraceEvent event, TraceTime at);
  void metadata(TraceEvent event);
  // The begin of an asynchronous span, then by a second call its end, with a range that cut() gave.
  void begin(TraceEvent event, TraceTime at) { emit(TracePhase::kBegin, std::move(event), at); }
  void end(TraceEvent event, TraceTime at) { emit(TracePhase::kEnd, std::move(event), at); }
  // The part of a span within the bounds; nullopt where the span has no part of them.
  std::optional<TraceRange> cut(TraceTime from, TraceTime to) const;

  const TraceRange& range() const { return range_; }
  std::uint64_t events() const { return events_; }

 private:
  bool contains(TraceTime at) const { return at >= range_.first && at <= range_.last; }
  void emit(TracePhase phase, TraceEvent event, TraceTime at);

  const TraceRange range_;
  const TraceTime zero_;
  const Emit emit_;
  std::uint64_t events_ = 0;
};

}  // namespace tandem::timeline
