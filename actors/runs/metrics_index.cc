// Columns of doubles, one row per step, scanned from the first row of the range to the last. A tree
// of coarser levels would not pay: a plot of 100,000 rows scans 800 KB per key, which takes well
// under a millisecond.
#include "actors/runs/metrics_index.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

namespace tandem::runs {

namespace fs = std::filesystem;

namespace {

constexpr double kGap = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kKeyBytesMax = 200;
constexpr std::uint32_t kMetricsFormat = 2;  // 1: without records of evaluations

struct Extremes {
  double min = kGap, max = kGap, sum = 0;
  std::size_t count = 0;

  void add(double value) {
    if (std::isnan(value)) return;
    min = count == 0 ? value : std::min(min, value);
    max = count == 0 ? value : std::max(max, value);
    sum += value;
    ++count;
  }
  double mean() const { return count == 0 ? kGap : sum / static_cast<double>(count); }
};

}  // namespace

// The content of metrics.index. Another format, or one that does not decode, is read anew from the
// lines.
struct MetricsCopy {
  std::uint32_t format = kMetricsFormat;
  LineMark mark;
  std::vector<std::int64_t> steps;
  std::map<std::string, std::vector<double>> columns;
};
TANDEM_WIRE(MetricsCopy, format, mark, steps, columns)

void MetricsIndex::clear() {
  steps_.clear();
  columns_.clear();
}

std::optional<LineMark> MetricsIndex::load(const fs::path& path) {
  auto copy = read_copy<MetricsCopy>(path);
  if (!copy || copy->format != kMetricsFormat) return std::nullopt;
  for (const auto& [key, column] : copy->columns)
    // A copy that contradicts itself is as good as none.
    if (column.size() > copy->steps.size()) return std::nullopt;
  steps_ = std::move(copy->steps);
  columns_ = std::move(copy->columns);
  return copy->mark;
}

Result<void> MetricsIndex::refresh(const fs::path& run_dir) {
  const auto at_end =
      progress_.read_on(run_dir, kRefreshBytesMax,
                        {.load = [this](const fs::path& copy) { return load(copy); },
                         .clear = [this] { clear(); },
                         .take = [this](std::uint64_t, std::string_view line) { take(line); }});
  complete_ = !at_end || *at_end;
  if (!at_end) return at_end.error();
  return {};
}

void MetricsIndex::insert_row(std::size_t row, std::int64_t step) {
  const auto at = static_cast<std::ptrdiff_t>(row);
  steps_.insert(steps_.begin() + at, step);
  for (auto& [key, column] : columns_)
    if (row < column.size()) column.insert(column.begin() + at, kGap);
}

std::optional<std::size_t> MetricsIndex::row_of_line() {
  const auto at = std::lower_bound(steps_.begin(), steps_.end(), line_.step);
  const auto row = static_cast<std::size_t>(at - steps_.begin());
  const bool there = at != steps_.end() && *at == line_.step;
  if (!there && at != steps_.end() && !line_.evaluation) return std::nullopt;
  if (!there) insert_row(row, line_.step);
  if (!there || line_.evaluation) return row;
  for (auto& [key, column] : columns_)
    // The later line replaces the earlier one whole: a key that it lacks becomes a gap.
    if (row < column.size()) column[row] = kGap;
  return row;
}

void MetricsIndex::take(std::string_view text) {
  if (!read_metrics_line(text, line_)) return;
  const auto found = row_of_line();
  if (!found) return;
  const std::size_t row = *found;
  auto next = columns_.begin();  // lines name their keys in the same order, which is the map's
  for (const auto& [key, value] : line_.values) {
    auto it = next != columns_.end() && next->first == key ? next : columns_.find(key);
    if (it == columns_.end()) {
      if (columns_.size() == kMetricKeysMax || key.size() > kKeyBytesMax) continue;
      it = columns_.emplace(key, Column()).first;
    }
    // A key that appears late has gaps in all rows before.
    if (it->second.size() <= row) it->second.resize(row + 1, kGap);
    it->second[row] = value;
    next = std::next(it);
  }
  if (cells() > cells_max_) thin();
}

// Halves the rows: of each four, two remain, one with the minima and one with the maxima. Columns
// keep their peaks, and their means become approximate. The last rows, fewer than four, stay.
void MetricsIndex::thin() {
  const std::size_t whole = steps_.size() / 4 * 4;
  for (auto& [key, column] : columns_) {
    const std::size_t rows = column.size();
    Column thinned;
    thinned.reserve(rows / 2 + 4);
    for (std::size_t row = 0; row < std::min(whole, rows); row += 4) {
      Extremes four;
      for (std::size_t i = row; i < std::min(row + 4, rows); ++i) four.add(column[i]);
      thinned.push_back(four.min);
      thinned.push_back(four.max);
    }
    for (std::size_t row = whole; row < rows; ++row) thinned.push_back(column[row]);
    column = std::move(thinned);
  }
  std::vector<std::int64_t> steps;
  for (std::size_t row = 0; row < whole; row += 4)
    steps.insert(steps.end(), {steps_[row], steps_[row + 3]});
  steps.insert(steps.end(), steps_.begin() + static_cast<std::ptrdiff_t>(whole), steps_.end());
  steps_ = std::move(steps);
}

std::optional<StepRange> MetricsIndex::steps() const {
  if (steps_.empty()) return std::nullopt;
  return StepRange{steps_.front(), steps_.back()};
}

std::vector<std::string> MetricsIndex::keys() const {
  std::vector<std::string> keys;
  for (const auto& [key, column] : columns_) keys.push_back(key);
  return keys;
}

MetricSeries MetricsIndex::series(const std::string& key, StepRange range,
                                  std::size_t points) const {
  MetricSeries series;
  const auto it = columns_.find(key);
  if (it == columns_.end() || steps_.empty() || points == 0) return series;
  const Column& column = it->second;
  const std::int64_t first = std::max(range.first, steps_.front());
  const std::int64_t last = std::min(range.last, steps_.back());
  if (first > last) return series;
  const auto wanted = static_cast<std::int64_t>(points);
  // Buckets are aligned to the first step, and there are at most `wanted` of them.
  const std::int64_t width = (last - first) / wanted + 1;
  auto row = static_cast<std::size_t>(std::lower_bound(steps_.begin(), steps_.end(), first) -
                                      steps_.begin());
  while (row < steps_.size() && steps_[row] <= last) {
    // Buckets without rows are passed over.
    const std::int64_t end = first + ((steps_[row] - first) / width + 1) * width;
    series.steps.push_back(steps_[row]);
    Extremes bucket;
    for (; row < steps_.size() && steps_[row] < end && steps_[row] <= last; ++row)
      if (row < column.size()) bucket.add(column[row]);
    series.min.push_back(bucket.min);
    series.max.push_back(bucket.max);
    series.mean.push_back(bucket.mean());
  }
  return series;
}

void MetricsIndex::keep(const fs::path& run_dir, bool over) {
  progress_.keep(run_dir, over, [this](const LineMark& read_to) {
    return wire::encode(MetricsCopy{.mark = read_to, .steps = steps_, .columns = columns_});
  });
}

}  // namespace tandem::runs
