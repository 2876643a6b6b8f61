// Rows are kept as numbers, which takes a tenth of what JSON values would take: a run of 100,000
// steps with 80 keys needs 64 MB.
#include "actors/cli/metrics_table.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <ostream>

#include "actors/cli/table.h"
#include "runtime/base/check.h"
#include "runtime/base/text.h"

namespace tandem::cli {
namespace {

constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();

// The shortest text that reads back as the same number.
std::string exact(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value);
  return std::string(text, end.ptr);
}

// The same with at most six digits, for people.
std::string short_number(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::general, 6);
  return std::string(text, end.ptr);
}

// A key is the user's own where a reward program has named it.
std::string column_name(const std::string& key) { return visible(key, Lines::kOne); }

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

double cell(const std::vector<double>& row, std::size_t column) {
  return column < row.size() ? row[column] : kNoValue;
}

}  // namespace

Result<void> MetricsTable::add(const nlohmann::json& line) {
  if (!line.is_object()) return {};
  const auto step = line.find("step");
  if (step == line.end() || !step->is_number_integer()) return {};
  const auto kind = line.find("eval");
  Row& row = rows_[step->get<std::int64_t>()];
  cells_ -= row.size();
  if (kind == line.end() || !kind->is_string()) row.clear();
  for (const auto& [key, value] : line.items()) {
    if (key == "step" || !value.is_number()) continue;
    const auto column = columns_.emplace(key, columns_.size()).first->second;
    if (row.size() <= column) row.resize(column + 1, kNoValue);
    row[column] = value.get<double>();
  }
  cells_ += row.size();
  if (cells_ <= cells_max_ && columns_.size() <= kTableKeysMax) return {};
  return Error{ErrorCode::kInvalid,
               "the run has more than " + std::to_string(cells_max_) + " figures, or more than " +
                   std::to_string(kTableKeysMax) + " keys",
               "", "choose some of them by --keys or --steps"};
}

void MetricsTable::print(MetricsForm form, const Screen& screen, std::ostream& out) const {
  switch (form) {
    case MetricsForm::kCsv:
      print_csv(out);
      break;
    case MetricsForm::kJsonl:
      print_lines(out);
      break;
    case MetricsForm::kTable:
      print_keys(screen, out);
      break;
    case MetricsForm::kParquet:
      CHECK(false);
  }
  out << std::flush;
}

std::vector<std::string> MetricsTable::columns() const {
  std::vector<std::string> names{"step"};
  for (const auto& [key, column] : columns_) names.push_back(column_name(key));
  return names;
}

void MetricsTable::print_csv(std::ostream& out) const {
  out << "step";
  for (const auto& [key, column] : columns_) out << ',' << csv_field(column_name(key));
  out << '\n';
  for (const auto& [step, row] : rows_) {
    out << step;
    for (const auto& [key, column] : columns_) {
      out << ',';
      if (const double value = cell(row, column); !std::isnan(value)) out << exact(value);
    }
    out << '\n';
  }
}

void MetricsTable::print_lines(std::ostream& out) const {
  std::vector<std::pair<std::string, std::size_t>> names;  // `"key":`, made once
  for (const auto& [key, column] : columns_) names.emplace_back(shown_json(key) + ":", column);
  for (const auto& [step, row] : rows_) {
    out << "{\"step\":" << step;
    for (const auto& [name, column] : names)
      if (const double value = cell(row, column); !std::isnan(value))
        out << ',' << name << exact(value);
    out << "}\n";
  }
}

void MetricsTable::print_keys(const Screen& screen, std::ostream& out) const {
  struct Summary {
    std::size_t count = 0;
    double first = kNoValue, last = kNoValue, least = kNoValue, greatest = kNoValue;
  };
  std::vector<Summary> of(columns_.size());
  for (const auto& [step, row] : rows_)
    for (std::size_t column = 0; column < row.size(); ++column) {
      const double value = row[column];
      if (std::isnan(value)) continue;
      Summary& key = of[column];
      if (key.count++ == 0) key.first = key.least = key.greatest = value;
      key.last = value;
      key.least = std::min(key.least, value);
      key.greatest = std::max(key.greatest, value);
    }
  std::vector<tandem::cli::Row> lines;
  for (const auto& [key, column] : columns_) {
    const Summary& summary = of[column];
    lines.push_back({key, std::to_string(summary.count), short_number(summary.first),
                     short_number(summary.last), short_number(summary.least),
                     short_number(summary.greatest)});
  }
  if (lines.empty()) {
    out << "no figures\n";
    return;
  }
  out << render_table({{.title = "KEY", .width_min = 12},
                       {.title = "STEPS", .align = Align::kRight},
                       {.title = "FIRST", .align = Align::kRight, .width_min = 6},
                       {.title = "LAST", .align = Align::kRight, .width_min = 6},
                       {.title = "MIN", .align = Align::kRight, .width_min = 6, .drop = 1},
                       {.title = "MAX", .align = Align::kRight, .width_min = 6, .drop = 1}},
                      lines, screen.width);
}

}  // namespace tandem::cli
