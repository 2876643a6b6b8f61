// The figures of a run as one table, with a row per step and a column per key, for programs that
// read tables: spreadsheets, pandas, gnuplot. Pure but for the stream that it prints to.
//
//   MT-1  Rows are in the order of their steps and columns in that of their names, whatever the
//         order of the lines. If a step has several lines, the last one counts; the record of an
//         evaluation adds its figures to the row of its version.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include "actors/cli/views.h"
#include "runtime/base/enum_names.h"
#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace tandem::cli {

inline constexpr std::size_t kTableCellsMax = std::size_t{64} << 20;  // 512 MiB
inline constexpr std::size_t kTableKeysMax = 4096;

enum class MetricsForm { kCsv, kJsonl, kTable, kParquet };
constexpr auto enum_names(MetricsForm) {
  using enum MetricsForm;
  return enum_name_rows<MetricsForm>(
      {{kCsv, "csv"}, {kJsonl, "jsonl"}, {kTable, "table"}, {kParquet, "parquet"}});
}

class MetricsTable {
 public:
  explicit MetricsTable(std::size_t cells_max = kTableCellsMax) : cells_max_(cells_max) {}

  // Takes a line of metrics.jsonl. Members that are no numbers are left out, as are lines without
  // a step. kInvalid where the table is full.
  Result<void> add(const nlohmann::json& line);
  // CSV (RFC 4180 but for the newline) begins with the keys, and a missing figure is an empty
  // field. JSON lines have the figures that there are. The table has a line per key, with how many
  // figures it has, the first, the last, the least and the greatest. Parquet, which is no text, is
  // written by data::write_parquet() from CSV, and is not printed here.
  void print(MetricsForm form, const Screen& screen, std::ostream& out) const;

  std::size_t rows() const { return rows_.size(); }
  std::vector<std::string> columns() const;  // as the first line of CSV names them

 private:
  using Row = std::vector<double>;  // by the numbers of columns; NaN and missing ones are gaps

  void print_csv(std::ostream& out) const;
  void print_lines(std::ostream& out) const;
  void print_keys(const Screen& screen, std::ostream& out) const;

  const std::size_t cells_max_;
  std::size_t cells_ = 0;
  std::map<std::string, std::size_t> columns_;  // key -> number, in the order of appearance
  std::map<std::int64_t, Row> rows_;
};

}  // namespace tandem::cli
