// The rows of a parquet file. A child program reads it (parquet_program.h) and writes rows as lines
// of JSON, which become records while it writes, and are kept (row_cache.h), so that the next
// reader of the same content needs no program.
//
//   PR-1  As many rows are given as the footer counts, or the reading ends in an error: a program
//         that dies, hangs, or writes fewer, more or other lines is named, and nothing that it
//         wrote is kept.
//
// NaN and infinities become null, as pandas writes them. "train.parquet:17" is the 17th row.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>

#include "actors/data/parquet_program.h"
#include "actors/data/record_source.h"
#include "actors/data/row_cache.h"
#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/base/result.h"

namespace tandem::data {

struct ParquetReading {
  ParquetPrograms programs;
  RowCache cache;
  Duration silence_max;  // of a program, between two pieces of its output
};

// This machine's programs, and a cache in the state folder.
ParquetReading parquet_reading_here();

// `file` is at its start. Errors: kInvalid for a file whose rows cannot become records; kFailed and
// kTimedOut for a program that is missing, fails or is silent, and for a cache that cannot be
// written. Waits while another process makes the same rows (KE-3).
Result<std::unique_ptr<RecordSource>> parquet_rows(OpenFile file, const std::filesystem::path& path,
                                                   std::size_t record_bytes_max,
                                                   const ParquetReading& reading,
                                                   const TellWait& tell = {});

}  // namespace tandem::data
