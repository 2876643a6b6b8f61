#include "actors/data/write_parquet.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <ostream>
#include <span>
#include <vector>

#include "runtime/base/file.h"
#include "runtime/node/program_output.h"

namespace tandem::data {
namespace {

// A file in memory that is at its start.
Result<OwnedFd> file_of(std::string_view bytes) {
  OwnedFd file(::memfd_create("csv", MFD_CLOEXEC));
  if (!file) return file_error("create file", "csv");
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(file.get(), bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return file_error("write file", "csv");
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
  }
  if (::lseek(file.get(), 0, SEEK_SET) < 0) return file_error("read file", "csv");
  return file;
}

Error of_program(const Error& error) {
  return {error.code, "cannot write parquet: " + error.message, "",
          "-o csv needs no other program"};
}

}  // namespace

Result<void> write_parquet(const std::string& csv, const std::vector<std::string>& columns,
                           const ParquetPrograms& programs, std::ostream& out) {
  const auto program = parquet_writing_program(programs, columns, kParquetSilenceMax);
  if (!program) return program.error();
  const auto input = file_of(csv);
  if (!input) return input.error();
  auto output = node::ProgramOutput::start(*program, *input);
  if (!output) return of_program(output.error());
  std::vector<char> piece(std::size_t{1} << 16);
  for (;;) {
    const auto got = (*output)->read(piece);
    if (!got && (*output)->exit_code() == kNoPyarrow) return no_parquet_program("");
    if (!got) return of_program(got.error());
    const bool ended = *got == 0;
    if (ended)
      out.flush();
    else
      out.write(piece.data(), static_cast<std::streamsize>(*got));
    if (!out)
      return Error{ErrorCode::kFailed, "the parquet file could not be written to its end", "",
                   "is its disk full?"};
    if (ended) return {};
  }
}

}  // namespace tandem::data
