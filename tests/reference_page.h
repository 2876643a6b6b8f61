// The tables of a reference page below docs/, so that a test can compare them with the code.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <fstream>
#include <set>
#include <string>
#include <vector>

namespace tandem {

using TableRow = std::vector<std::string>;  // its cells, from the left

// `line` is "| a | b |".
inline TableRow cells_of(const std::string& line) {
  TableRow cells;
  std::size_t begin = 2;
  std::size_t end = line.find(" |", begin);
  while (end != std::string::npos) {
    cells.push_back(line.substr(begin, end - begin));
    begin = end + 3;
    end = line.find(" |", begin);
  }
  return cells;
}

// The rows below "## `heading`" of docs/`page`: those whose first cell is a code in backticks.
inline std::vector<TableRow> table_rows(const std::string& page, const std::string& heading) {
  std::ifstream file(std::string(TANDEM_SOURCE_DIR) + "/docs/" + page);
  EXPECT_TRUE(file.is_open()) << "docs/" << page;
  std::vector<TableRow> rows;
  bool below = false;
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with("## ")) below = line == "## " + heading;
    if (below && line.starts_with("| `")) rows.push_back(cells_of(line));
  }
  EXPECT_FALSE(rows.empty()) << "docs/" << page << " has no table below ## " << heading;
  return rows;
}

// The first column, without its backticks.
inline std::set<std::string> codes_of(const std::vector<TableRow>& rows) {
  std::set<std::string> codes;
  for (const TableRow& row : rows) {
    const std::string& cell = row.at(0);
    const std::string code = cell.substr(1, cell.size() - 2);
    EXPECT_TRUE(codes.insert(code).second) << code << " has two rows";
  }
  return codes;
}

}  // namespace tandem
