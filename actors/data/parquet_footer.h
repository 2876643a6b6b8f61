// The footer of a parquet file: how many rows the file has, and its columns. The rows themselves
// are read by a child program (parquet_program.h); the footer says beforehand whether the file is
// whole, whether its columns can be read, and how far the reading is.
//
// Source: github.com/apache/parquet-format, parquet.thrift (FileMetaData, SchemaElement,
// LogicalType) and Thrift's compact protocol, in which the footer is written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/base/file.h"
#include "runtime/base/result.h"

namespace tandem::data {

inline constexpr std::uint64_t kFooterBytesMax = std::uint64_t{64} << 20;
inline constexpr std::size_t kSchemaElementsMax = 100'000;

// A leaf of the schema: a column that holds values and no further columns.
struct ParquetLeaf {
  enum class Kind { kNumber, kFloat, kText, kBinary, kDecimal, kInterval };
  std::vector<std::string> path;  // the names from the top, with those of lists' inner groups
  Kind kind = Kind::kNumber;
};

struct ParquetFooter {
  std::uint64_t rows = 0;
  std::vector<ParquetLeaf> leaves;
};

// Reads the footer of a regular file of `bytes` bytes. kInvalid for a file that is cut off, that is
// encrypted, or whose footer is damaged; `path` is for errors.
Result<ParquetFooter> read_parquet_footer(const OwnedFd& fd, std::uint64_t bytes,
                                          const std::filesystem::path& path);

// Why rows with these columns cannot become JSON: a column of bytes that are no text, of intervals,
// or of decimals within a list or struct; two columns with one name.
Result<void> check_columns(const ParquetFooter& footer, const std::filesystem::path& path);

}  // namespace tandem::data
