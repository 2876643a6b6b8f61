// A journal's trace in memory.
#pragma once

#include <limits>
#include <utility>
#include <vector>

#include "actors/timeline/timeline.h"

namespace tandem::timeline {

struct Traced {
  std::vector<TraceEvent> events;
  TraceRange range;
  TraceTime zero = 0;
  std::int64_t last_step = 0;
  bool is_full = false;
};

struct TracedBy {
  TraceBound from = {}, to = {};
  std::uint64_t events_max = std::numeric_limits<std::uint64_t>::max();
  Timeline::FiguresOf figures = [](std::int64_t) { return StepFigures{}; };
};

inline Result<Traced> trace_of(const std::vector<exchange::JournalEntry>& entries,
                               const TracedBy& by = {}) {
  RunSurvey survey(by.from, by.to);
  for (const exchange::JournalEntry& entry : entries) survey.take(entry);
  const auto range = survey.range();
  if (!range) return range.error();
  Traced traced{.range = *range, .zero = survey.begun()};
  Timeline timeline(survey, *range, by.events_max, by.figures,
                    [&traced](const TraceEvent& event) { traced.events.push_back(event); });
  for (const exchange::JournalEntry& entry : entries) timeline.take(entry);
  traced.is_full = timeline.is_full();
  timeline.end();
  traced.last_step = timeline.last_step();
  return traced;
}

}  // namespace tandem::timeline
