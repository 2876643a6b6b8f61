#include "actors/timeline/trace_window.h"

#include <algorithm>

namespace tandem::timeline {

// A span that only touches a bound from outside is no part of what lies between the bounds.
std::optional<TraceRange> TraceWindow::cut(TraceTime from, TraceTime to) const {
  const bool before = to < range_.first || (to == range_.first && from < to);
  const bool behind = from > range_.last || (from == range_.last && to > from);
  if (before || behind) return std::nullopt;
  return TraceRange{std::max(from, range_.first), std::min(to, range_.last)};
}

void TraceWindow::span(TraceEvent event, TraceTime from, TraceTime to) {
  const auto part = cut(from, to);
  if (!part) return;
  if (part->first != from || part->last != to)
    event.arguments.push_back({"cut", std::string("at the bound")});
  event.lasts = part->last - part->first;
  emit(TracePhase::kSpan, std::move(event), part->first);
}

void TraceWindow::instant(TraceEvent event, TraceTime at) {
  if (contains(at)) emit(TracePhase::kInstant, std::move(event), at);
}

void TraceWindow::counter(TraceEvent event, TraceTime at) {
  if (contains(at)) emit(TracePhase::kCounter, std::move(event), at);
}

void TraceWindow::metadata(TraceEvent event) {
  emit(TracePhase::kMetadata, std::move(event), zero_);
}

void TraceWindow::emit(TracePhase phase, TraceEvent event, TraceTime at) {
  event.phase = phase;
  event.at = at - zero_;
  ++events_;
  emit_(event);
}

}  // namespace tandem::timeline
