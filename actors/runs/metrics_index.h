// The figures of one run's metrics.jsonl as columns in memory, so that a plot of 100,000 steps does
// not read the file again: refresh() reads the lines that were appended since the last call,
// series() answers from memory, and keep() leaves `metrics.index` in the run directory for the next
// reader.
//
//   MX-1  No byte of metrics.jsonl is read twice while the file only grows, but for the few that
//         show that it is still the same file.
//   MX-2  A bucket's minimum and maximum are those of all rows in it; a value that is absent or
//         null is a gap and never a number.
//   MX-3  At most kCellsMax values are held: beyond, neighbouring rows are merged to their minima
//         and maxima.
//
// One thread at a time. If a step has several lines, the last one counts. The record of an
// evaluation adds its values to the row of its version, however many steps came before it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/runs/index_progress.h"
#include "actors/runs/metrics_line.h"
#include "runtime/base/result.h"

namespace tandem::runs {

inline constexpr std::size_t kCellsMax = std::size_t{8} << 20;  // 64 MiB
inline constexpr std::size_t kMetricKeysMax = 1024;             // further keys are left out
inline constexpr std::uint64_t kRefreshBytesMax = std::uint64_t{256} << 20;  // per request
inline constexpr std::size_t kPointsDefault = 500, kPointsMax = 5000;

// Both ends are included.
struct StepRange {
  std::int64_t first = 0, last = 0;
};

// One entry per bucket that has rows; a bucket without values has NaN in all three.
struct MetricSeries {
  std::vector<std::int64_t> steps;  // the first step of each bucket
  std::vector<double> min, max, mean;
};

class MetricsIndex {
 public:
  explicit MetricsIndex(std::size_t cells_max = kCellsMax) : cells_max_(cells_max) {}

  // Reads the lines of the run's metrics.jsonl that this index lacks, at most kRefreshBytesMax
  // bytes of them; the first call begins with metrics.index, the copy that an earlier index left.
  // A run without the file has no rows.
  Result<void> refresh(const std::filesystem::path& run_dir);
  // Writes `metrics.index` where it is due, see IndexProgress::keep.
  void keep(const std::filesystem::path& run_dir, bool over);

  bool complete() const { return complete_; }  // the last refresh() came to the file's end
  std::optional<StepRange> steps() const;      // none without rows
  std::vector<std::string> keys() const;       // sorted
  // At most `points` buckets of equal width, over the part of `range` that has rows. Empty for a
  // key that is not known.
  MetricSeries series(const std::string& key, StepRange range, std::size_t points) const;

  std::size_t cells() const { return steps_.size() * (columns_.size() + 1); }
  // How many bytes of metrics.jsonl have been read in all.
  std::uint64_t bytes_read() const { return progress_.bytes_read(); }

 private:
  using Column = std::vector<double>;  // one value per row; missing ones at the end are gaps

  void take(std::string_view text);
  // The row for the line that was read; nullopt where the row was merged.
  std::optional<std::size_t> row_of_line();
  void insert_row(std::size_t row, std::int64_t step);
  void thin();
  void clear();
  std::optional<LineMark> load(const std::filesystem::path& path);

  const std::size_t cells_max_;
  IndexProgress progress_{"metrics.jsonl", "metrics.index"};
  bool complete_ = false;
  MetricsLine line_;                 // the line being read; a member to reuse its memory
  std::vector<std::int64_t> steps_;  // ascending
  std::map<std::string, Column> columns_;
};

}  // namespace tandem::runs
