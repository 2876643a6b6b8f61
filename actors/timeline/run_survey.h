// The first of two readings of a journal: when the run begins and ends, where the steps lie that
// bound a trace, and which steps were lost again. Pure; its memory grows with the resumptions
// alone.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "actors/exchange/state/journal_event.h"
#include "actors/timeline/trace_window.h"
#include "runtime/base/result.h"

namespace tandem::timeline {

// A step, as metrics.jsonl counts them, or a time since the run's first entry.
struct TraceBound {
  std::optional<std::int64_t> step;
  std::optional<double> seconds;
};

class RunSurvey {
 public:
  // The steps from `first`, whose training is shown, to `last`.
  RunSurvey(TraceBound first, TraceBound last) : first_(first), last_(last) {}

  void take(const exchange::JournalEntry& entry);

  // What the bounds come to. Where a step was trained several times, as after a resumption, the
  // last time counts. Errors: kInvalid for bounds that the run does not have, or that are in the
  // wrong order; kNotFound where the journal has no event.
  Result<TraceRange> range() const;
  TraceTime begun() const { return begun_.value_or(0); }  // the time of the first entry
  TraceTime ended() const { return now_; }                // and of the last one
  bool is_whole() const { return whole_; }                // the first event is the run's first
  std::optional<std::int64_t> first_step() const { return first_known_; }  // that the journal has
  std::optional<std::int64_t> last_step() const { return last_known_; }

  // Whether a step that was committed after so many resumptions was lost by a later one, so that
  // metrics.jsonl has the figures of another training of it.
  bool is_lost(StepId step, std::size_t resumptions) const;

 private:
  TraceBound first_, last_;
  std::optional<TraceTime> begun_, step_before_, step_last_;
  TraceTime now_ = 0;
  bool whole_ = false;
  std::optional<std::int64_t> first_known_, last_known_;
  std::vector<StepId> resumed_from_;  // the checkpoints, in order
};

}  // namespace tandem::timeline
