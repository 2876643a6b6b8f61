// Writes a table of numbers as a parquet file, by a child program (parquet_program.h).
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "actors/data/parquet_program.h"
#include "runtime/base/result.h"

namespace tandem::data {

// `csv` has the names of `columns` in its first line; of the columns, the first has whole numbers,
// and an empty field is null. Errors: kFailed and kTimedOut for a program that is missing, fails or
// is silent, and for an `out` that takes no more; `out` may then hold a part of the file.
Result<void> write_parquet(const std::string& csv, const std::vector<std::string>& columns,
                           const ParquetPrograms& programs, std::ostream& out);

}  // namespace tandem::data
