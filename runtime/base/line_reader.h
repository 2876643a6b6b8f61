// The lines of a file from its start to its end, one at a time: a file of any size takes the memory
// of one line. Not for files that grow while they are read (line_file.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/file.h"
#include "runtime/base/result.h"

namespace tandem {

class LineReader {
 public:
  // FI-1 (file.h). A line of more than `line_bytes_max` bytes is an error of next().
  static Result<LineReader> open(const std::filesystem::path& path, std::size_t line_bytes_max);

  // The next line without its newline, which the last line of a file may lack; nullopt at the end
  // of the file. The view is valid until the next call. Errors: kInvalid for a line that is too
  // long, kFailed for a file that cannot be read on.
  Result<std::optional<std::string_view>> next();

  // The number of the last line that next() gave, from 1.
  std::uint64_t number() const { return number_; }
  std::uint64_t bytes_read() const { return bytes_read_; }

 private:
  LineReader(OwnedFd fd, std::filesystem::path path, std::size_t line_bytes_max);
  // Reads more bytes behind those that are held. False at the end of the file.
  Result<bool> fill();

  OwnedFd fd_;
  std::filesystem::path path_;
  std::size_t line_bytes_max_;
  std::string buffer_;  // its bytes begin_ … end_ have not been given yet
  std::size_t begin_ = 0, end_ = 0;
  std::uint64_t number_ = 0, bytes_read_ = 0;
};

}  // namespace tandem
