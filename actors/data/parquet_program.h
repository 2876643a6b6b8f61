// The child programs that read and write parquet: which one this machine has, and how it is asked.
// A program that reads writes each row of the file as one line of JSON; one that writes makes a
// parquet file of CSV. Both take the standard input and write to the standard output.
//
// Rows are written by both programs as the package datasets shows them: lists and structs nested,
// null, whole numbers with all their digits, decimals as text with all their digits, dates and
// times as text: "2024-01-02", "2024-01-02 03:04:05.12", with "+00" behind it where the column has
// a time zone, in UTC. The keys of maps are names of an object. NaN and infinities are written as
// these words, which JSON does not have.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "actors/data/parquet_footer.h"
#include "runtime/base/clock.h"
#include "runtime/base/result.h"
#include "runtime/node/program_output.h"

namespace tandem::data {

struct ParquetPrograms {
  std::optional<std::filesystem::path> duckdb;  // DuckDB's command line
  std::optional<std::filesystem::path> python;  // a Python, which may have pyarrow
};

// `duckdb` in PATH; $TANDEM_PYTHON, a path or a name in PATH, else `python3` in PATH.
ParquetPrograms find_parquet_programs();

// A program that writes nothing for longer than this is ended.
inline constexpr Duration kParquetSilenceMax = std::chrono::seconds(120);
// With this code the program of Python ends where Python has no pyarrow.
inline constexpr int kNoPyarrow = 9;

// DuckDB where it is and can read these columns: it takes names that differ in upper and lower case
// alone for the same. Else Python. kFailed, with what to install, where the machine has neither.
Result<node::OutputProgram> parquet_program(const ParquetPrograms& programs,
                                            const ParquetFooter& footer, Duration silence_max);

// The same for writing. `columns` are the names in the CSV's first line: the first has whole
// numbers, each other one numbers, and an empty field is null.
Result<node::OutputProgram> parquet_writing_program(const ParquetPrograms& programs,
                                                    const std::vector<std::string>& columns,
                                                    Duration silence_max);

// What to install, for `path`.
Error no_parquet_program(const std::filesystem::path& path);

}  // namespace tandem::data
