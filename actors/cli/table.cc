// The width of a table is found in three steps. Cells are made safe to show first, since escapes
// change their widths. Then columns that may be dropped go, the greatest `drop` first, until the
// minimal widths of the rest fit. Then the widest column loses a place at a time until the whole
// fits, so that no column is cut while a wider one is not. If even the minimal widths do not fit,
// lines are cut at their ends. Where nothing limits the width, one long text must not push the
// columns of all other rows hundreds of places away: a column is padded to kPaddedMax at most.
#include "actors/cli/table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <span>

#include "runtime/base/text.h"

namespace tandem::cli {
namespace {

constexpr int kGap = 2;
constexpr int kPaddedMax = 64;
constexpr std::string_view kEllipsis = "…";

struct Span {
  char32_t first, last;
};

// Blocks of East Asian wide characters and emoji: an approximation that is good enough to align
// columns.
constexpr Span kWide[] = {
    {0x1100, 0x115F}, {0x2E80, 0x303E},   {0x3041, 0x33FF},   {0x3400, 0x4DBF},  {0x4E00, 0x9FFF},
    {0xA000, 0xA4CF}, {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},  {0xFF00, 0xFF60},
    {0xFFE0, 0xFFE6}, {0x1F300, 0x1F64F}, {0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD}};
constexpr Span kCombining[] = {{0x0300, 0x036F}, {0x200B, 0x200F}, {0xFE00, 0xFE0F}};

bool contains(std::span<const Span> spans, char32_t value) {
  return std::ranges::any_of(
      spans, [value](const Span& span) { return value >= span.first && value <= span.last; });
}

int columns_of(char32_t value) {
  if (contains(kCombining, value)) return 0;
  return contains(kWide, value) ? 2 : 1;
}

// The least width of a column: a column that is narrower than its minimum by nature stays so.
int width_least(const Column& column, int natural) { return std::min(natural, column.width_min); }

// No narrower than `kept`, which becomes the result.
ColumnWidths natural_widths(std::size_t columns, const std::vector<Row>& rows, ColumnWidths& kept) {
  kept.resize(columns, 0);
  for (const Row& row : rows)
    for (std::size_t c = 0; c < columns; ++c) kept[c] = std::max(kept[c], display_width(row[c]));
  return kept;
}

int total(const ColumnWidths& widths) {
  int sum = kGap * (static_cast<int>(widths.size()) - 1);
  for (const int w : widths) sum += w;
  return sum;
}

// Erases droppable columns, the greatest `drop` first, until the rest can be shrunk to `width`.
void drop_columns(std::vector<Column>& columns, std::vector<Row>& rows, ColumnWidths& widths,
                  int width) {
  for (;;) {
    ColumnWidths least = widths;
    for (std::size_t c = 0; c < columns.size(); ++c) least[c] = width_least(columns[c], widths[c]);
    const auto first = std::ranges::max_element(columns, {}, &Column::drop);
    if (total(least) <= width || first == columns.end() || first->drop == 0) return;
    const auto at = first - columns.begin();
    columns.erase(first);
    widths.erase(widths.begin() + at);
    for (Row& row : rows) row.erase(row.begin() + at);
  }
}

// The widest column that may still shrink gives way, a place at a time.
void shrink(const std::vector<Column>& columns, ColumnWidths& widths, int width) {
  for (int excess = total(widths) - width; excess > 0; --excess) {
    int widest = -1;
    for (int c = 0; c < static_cast<int>(columns.size()); ++c) {
      const auto at = static_cast<std::size_t>(c);
      const bool may_shrink = widths[at] > columns[at].width_min;
      if (may_shrink && (widest < 0 || widths[at] > widths[static_cast<std::size_t>(widest)]))
        widest = c;
    }
    if (widest < 0) break;
    --widths[static_cast<std::size_t>(widest)];
  }
}

std::string format(const char* pattern, double value) {
  std::array<char, 64> buffer;
  std::snprintf(buffer.data(), buffer.size(), pattern, value);
  return buffer.data();
}

}  // namespace

int display_width(std::string_view text) {
  int width = 0;
  while (!text.empty()) {
    const CodePoint point = first_code_point(text);
    width += columns_of(point.value);
    text.remove_prefix(point.bytes);
  }
  return width;
}

std::string fit(std::string_view text, int width) {
  if (display_width(text) <= width) return std::string(text);
  if (width <= 0) return "";
  std::string cut;
  int used = 0;
  while (!text.empty()) {
    const CodePoint point = first_code_point(text);
    // One column is kept for the ellipsis.
    if (used + columns_of(point.value) > width - 1) break;
    used += columns_of(point.value);
    cut += text.substr(0, point.bytes);
    text.remove_prefix(point.bytes);
  }
  return cut + std::string(kEllipsis);
}

std::string fit_middle(std::string_view text, int width) {
  if (display_width(text) <= width || width < 3) return fit(text, width);
  // The longest tail of at most half the columns, then as much of the head as has room.
  std::size_t tail = 0;
  while (display_width(text.substr(tail)) > width / 2)
    tail += first_code_point(text.substr(tail)).bytes;
  const std::string_view end = text.substr(tail);
  return fit(text.substr(0, tail), width - display_width(end)) + std::string(end);
}

std::string render_table(const std::vector<Column>& all_columns, const std::vector<Row>& rows,
                         int width, ColumnWidths* kept) {
  std::vector<Column> columns = all_columns;
  std::vector<Row> clean{{}};
  for (const Column& column : columns) clean.front().push_back(visible(column.title, Lines::kOne));
  for (const Row& row : rows) {
    clean.emplace_back();
    for (const std::string& cell : row) clean.back().push_back(visible(cell, Lines::kOne));
    // Cells without a column go, and missing ones become empty.
    clean.back().resize(columns.size());
  }
  const bool cuts = width < kUnlimitedWidth;
  ColumnWidths of_this_table;
  ColumnWidths widths = natural_widths(columns.size(), clean, kept ? *kept : of_this_table);
  drop_columns(columns, clean, widths, width);
  if (cuts)
    shrink(columns, widths, width);
  else
    for (int& w : widths) w = std::min(w, kPaddedMax);
  std::string text;
  for (const Row& row : clean) {
    std::string line;
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const std::string cell = !cuts                            ? row[c]
                               : columns[c].cut == Cut::kMiddle ? fit_middle(row[c], widths[c])
                                                                : fit(row[c], widths[c]);
      const int missing = std::max(0, widths[c] - display_width(cell));
      const std::string padding(static_cast<std::size_t>(missing), ' ');
      if (c > 0) line += std::string(kGap, ' ');
      line += columns[c].align == Align::kRight ? padding + cell : cell + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += fit(line, width) + "\n";
  }
  return text;
}

std::string age(double seconds) {
  const auto s = static_cast<std::int64_t>(std::max(0.0, seconds));
  const std::int64_t minute = 60, hour = 60 * minute, day = 24 * hour;
  std::array<char, 48> buffer;
  const auto two = [&](std::int64_t big, char big_unit, std::int64_t small, char small_unit) {
    std::snprintf(buffer.data(), buffer.size(), "%lld%c%02lld%c", static_cast<long long>(big),
                  big_unit, static_cast<long long>(small), small_unit);
    return std::string(buffer.data());
  };
  if (s < minute) return std::to_string(s) + "s";
  if (s < hour) return two(s / minute, 'm', s % minute, 's');
  if (s < day) return two(s / hour, 'h', s % hour / minute, 'm');
  return two(s / day, 'd', s % day / hour, 'h');
}

std::string short_age(double seconds) {
  const auto s = static_cast<std::int64_t>(std::max(0.0, seconds));
  const std::int64_t minute = 60, hour = 60 * minute, day = 24 * hour;
  const auto two = [](std::int64_t big, const char* big_unit, std::int64_t small,
                      const char* small_unit) {
    return std::to_string(big) + big_unit + (small > 0 ? std::to_string(small) + small_unit : "");
  };
  if (s < minute) return std::to_string(s) + "s";
  if (s < 10 * minute) return two(s / minute, "m", s % minute, "s");
  if (s < hour) return std::to_string(s / minute) + "m";
  if (s < 10 * hour) return two(s / hour, "h", s % hour / minute, "m");
  if (s < 2 * day) return std::to_string(s / hour) + "h";
  if (s < 10 * day) return two(s / day, "d", s % day / hour, "h");
  return std::to_string(s / day) + "d";
}

std::string short_count(double value) {
  static constexpr std::string_view kUnits[] = {"", "k", "M", "G", "T"};
  std::size_t unit = 0;
  double scaled = value;
  for (; std::abs(scaled) >= 999.5 && unit + 1 < std::size(kUnits); ++unit) scaled /= 1000;
  // Three significant digits: a value that would round to 100.0 is shown as 100.
  const bool whole = unit == 0 || std::abs(scaled) >= 99.95;
  return format(whole ? "%.0f" : "%.1f", scaled) + std::string(kUnits[unit]);
}

std::string short_bytes(double bytes) {
  static constexpr std::string_view kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  double scaled = bytes;
  for (; scaled >= 1023.5 && unit + 1 < std::size(kUnits); ++unit) scaled /= 1024;
  const bool whole = unit == 0 || scaled >= 99.95;
  return format(whole ? "%.0f " : "%.1f ", scaled) + std::string(kUnits[unit]);
}

}  // namespace tandem::cli
