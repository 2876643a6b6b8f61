// One line of metrics.jsonl as numbers. A flat object of plain keys and numbers, which is all that
// a run writes, is scanned without making a JSON value of it: several times as fast, and a history
// of 100,000 lines is first read while somebody waits for its plot.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tandem::actors {

inline constexpr std::int64_t kStepMax = std::int64_t{1} << 53;  // that JSON readers keep exact

struct MetricsLine {
  std::int64_t step = 0;                               // 0 … kStepMax
  std::vector<std::pair<std::string, double>> values;  // without the step; no nulls
};

// False where the line is no object with a `step`; values that are no numbers are left out. Uses
// the memory that `line` has.
bool read_metrics_line(std::string_view text, MetricsLine& line);

}  // namespace tandem::actors
