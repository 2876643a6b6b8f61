// A journal's trace in memory, and what must hold of each.
#pragma once

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <string>
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

// Spans of a row follow each other (TL-2), asynchronous ones are nested (TL-3), and all lie in the
// range (TL-1).
inline void expect_orderly(const Traced& traced) {
  std::map<std::pair<std::int64_t, std::int64_t>, TraceTime> ended;
  std::map<std::string, TraceTime> counted;
  std::map<std::uint64_t, std::vector<const TraceEvent*>> open;
  std::map<std::uint64_t, TraceTime> reached;
  for (const TraceEvent& event : traced.events) {
    if (event.phase == TracePhase::kMetadata) continue;
    ASSERT_GE(event.at + traced.zero, traced.range.first) << "TL-1: " << event.name;
    ASSERT_LE(event.at + event.lasts + traced.zero, traced.range.last) << "TL-1: " << event.name;
    ASSERT_GE(event.lasts, 0);
    if (event.phase == TracePhase::kSpan) {
      TraceTime& last = ended[{event.row.process, event.row.thread}];
      ASSERT_GE(event.at, last) << "TL-2: " << event.name << " in row " << event.row.thread;
      last = event.at + event.lasts;
    } else if (event.phase == TracePhase::kCounter) {
      ASSERT_GE(event.at, std::exchange(counted[event.name], event.at));
    } else if (event.phase == TracePhase::kBegin || event.phase == TracePhase::kEnd) {
      ASSERT_GE(event.at, std::exchange(reached[event.id], event.at)) << "TL-3";
      auto& stack = open[event.id];
      if (event.phase == TracePhase::kBegin) {
        stack.push_back(&event);
      } else {
        ASSERT_FALSE(stack.empty()) << "TL-3: an end without begin";
        ASSERT_EQ(stack.back()->name, event.name) << "TL-3";
        stack.pop_back();
      }
    }
  }
  for (const auto& [id, stack] : open) ASSERT_TRUE(stack.empty()) << "TL-3: group " << id;
}

}  // namespace tandem::timeline
