// The figures of a run's metrics.jsonl for a timeline, which asks for ascending steps: the file is
// read on piece by piece, and a piece is held at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "actors/runs/metrics_line.h"
#include "actors/timeline/timeline.h"
#include "runtime/base/line_file.h"

namespace tandem::timeline {

class MetricsCursor {
 public:
  // Without the file, as in a run that has trained no step, there are no figures.
  explicit MetricsCursor(const std::filesystem::path& run_dir);

  // The figures in the line of the step; none where the file lacks the line, or ends in an error. A
  // step below an earlier one has none.
  StepFigures at(std::int64_t step);

 private:
  bool read_on();
  void take(std::string_view text);

  std::optional<LineFile> file_;
  LineMark read_to_;
  std::deque<std::pair<std::int64_t, StepFigures>> lines_;
  runs::MetricsLine line_;  // the line being read; a member to reuse its memory
};

}  // namespace tandem::timeline
