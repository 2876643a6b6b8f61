// One line of metrics.jsonl as numbers. A flat object of plain keys and numbers, which a run writes
// for each step, is scanned without making a JSON value of it. That is several times as fast, and
// counts when a user waits for the first plot of 100,000 lines.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tandem::runs {

inline constexpr std::int64_t kVersionMin = -1;  // the weights before the warm start
inline constexpr std::int64_t kStepMax = std::int64_t{1} << 53;  // that JSON readers keep exact

struct MetricsLine {
  // 0 … kStepMax; of an evaluation, which may have kVersionMin, its version.
  std::int64_t step = 0;
  bool evaluation = false;  // a record of an evaluation (the key `eval`), not of a step
  std::vector<std::pair<std::string, double>> values;  // without the step; no nulls
};

// Returns false where the text is no object with a valid `step`. Values that are no numbers are
// left out. Reuses the memory of `line`.
bool read_metrics_line(std::string_view text, MetricsLine& line);

// The clock of the run in seconds, the time between its incarnations left out. Lines of steps have
// it.
std::optional<double> run_clock(const MetricsLine& line);
// When a kept line was written, in seconds since 1970. It holds the run's clock and no time of day,
// so it is placed as long before `now` as the run's clock says that it was before `newest`.
double time_of(const MetricsLine& kept, const MetricsLine& newest, double now);

}  // namespace tandem::runs
