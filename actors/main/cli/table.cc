#include "actors/main/cli/table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <span>

namespace tandem::cli {
namespace {

constexpr int kGap = 2;
constexpr std::string_view kEllipsis = "…";

struct CodePoint {
  char32_t value;
  std::size_t bytes;
};

// A byte that starts no valid sequence is one replacement character wide.
CodePoint decode(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC2 ? 2 : 0;
  if (size == 0 || text.size() < size) return {0xFFFD, 1};
  char32_t value = lead & (0x7Fu >> size);
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {0xFFFD, 1};
    value = (value << 6) | (byte(i) & 0x3F);
  }
  return {value, size};
}

struct Span {
  char32_t first, last;
};

// East Asian wide and emoji blocks; good enough for aligning columns.
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

// Control characters (escape sequences too) would move the cursor; they become spaces.
std::string printable(std::string_view text) {
  std::string clean;
  while (!text.empty()) {
    const CodePoint point = decode(text);
    const bool control = point.value < 0x20 || (point.value >= 0x7F && point.value < 0xA0);
    if (control)
      clean += ' ';
    else if (point.value == 0xFFFD && point.bytes == 1)
      clean += "\uFFFD";
    else
      clean += text.substr(0, point.bytes);
    text.remove_prefix(point.bytes);
  }
  return clean;
}

std::vector<int> column_widths(const std::vector<Column>& columns, const std::vector<Row>& rows,
                               int width) {
  std::vector<int> widths;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    int widest = 0;
    for (const Row& row : rows) widest = std::max(widest, display_width(row[c]));
    widths.push_back(widest);
  }
  const auto total = [&] {
    int sum = kGap * (static_cast<int>(columns.size()) - 1);
    for (const int w : widths) sum += w;
    return sum;
  };
  // The widest column that may still shrink gives way, a column at a time.
  for (int excess = total() - width; excess > 0; --excess) {
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
  return widths;
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
    const CodePoint point = decode(text);
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
    const CodePoint point = decode(text);
    if (used + columns_of(point.value) > width - 1) break;
    used += columns_of(point.value);
    cut += text.substr(0, point.bytes);
    text.remove_prefix(point.bytes);
  }
  return cut + std::string(kEllipsis);
}

std::string render_table(const std::vector<Column>& columns, const std::vector<Row>& rows,
                         int width) {
  std::vector<Row> clean{{}};
  for (const Column& column : columns) clean.front().push_back(printable(column.title));
  for (const Row& row : rows) {
    clean.emplace_back();
    for (const std::string& cell : row) clean.back().push_back(printable(cell));
    clean.back().resize(columns.size());
  }
  const std::vector<int> widths = column_widths(columns, clean, width);
  std::string text;
  for (const Row& row : clean) {
    std::string line;
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const std::string cell = fit(row[c], widths[c]);
      const std::string padding(static_cast<std::size_t>(widths[c] - display_width(cell)), ' ');
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

std::string short_count(double value) {
  static constexpr std::string_view kUnits[] = {"", "k", "M", "G", "T"};
  std::size_t unit = 0;
  double scaled = value;
  for (; std::abs(scaled) >= 999.5 && unit + 1 < std::size(kUnits); ++unit) scaled /= 1000;
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
