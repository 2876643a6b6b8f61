// Opens a data file as a source of records. The format is found by the file's first bytes, and for
// tables of text by its name:
//
//   PAR1                      parquet (parquet_rows.h)
//   gzip, zstd                what is packed in it, which may be any of the formats below
//   [                         one JSON array
//   a name in .csv, .tsv      a table of text, unless its text begins with {
//   anything else             JSON lines
//
// Regular files alone are opened (FI-1, runtime/base/file.h). Other formats are refused by name
// (foreign_format.h).
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>

#include "actors/data/record_source.h"
#include "runtime/base/result.h"

namespace tandem::data {

// kFailed for a file that cannot be read, kInvalid for a format that holds no records. Waits while
// another process makes the rows of the same parquet file (KE-3, row_cache.h).
Result<std::unique_ptr<RecordSource>> open_records(const std::filesystem::path& path,
                                                   std::size_t record_bytes_max,
                                                   const TellWait& tell = {});

}  // namespace tandem::data
