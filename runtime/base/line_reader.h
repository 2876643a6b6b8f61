// The lines of a file, or of other bytes, from the start to the end, one at a time: a source of any
// size takes the memory of one line. Not for files that grow while they are read (line_file.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/byte_source.h"
#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/base/result.h"

namespace tandem {

class LineReader {
 public:
  // FI-1 (file.h). A line of more than `line_bytes_max` bytes is an error of next().
  static Result<LineReader> open(const std::filesystem::path& path, std::size_t line_bytes_max);
  // The lines of `bytes`; `path` is for errors.
  LineReader(std::unique_ptr<ByteSource> bytes, std::filesystem::path path,
             std::size_t line_bytes_max);

  // Reads a descriptor, which may be a pipe or a terminal; `path` is its name in errors.
  static LineReader of(OwnedFd fd, const std::filesystem::path& path, std::size_t line_bytes_max);

  // Whether next() answers without a wait for a writer, because a line is held or the end has come.
  // Only the reader that of() made may have to wait, here at most `wait`. kFailed for a file that
  // cannot be read on.
  Result<bool> ready(Duration wait);

  // The next line without its newline, which the last line of a file may lack; nullopt at the end
  // of the file. The view is valid until the next call. Errors: kInvalid for a line that is too
  // long, and those of the source.
  Result<std::optional<std::string_view>> next();

  // The number of the last line that next() gave, from 1.
  std::uint64_t number() const { return number_; }
  // Of the file beneath (byte_source.h).
  std::uint64_t bytes_read() const { return bytes_->bytes_read(); }

 private:
  // Reads more bytes behind those that are held. False at the end of the file.
  Result<bool> fill();

  std::unique_ptr<ByteSource> bytes_;
  std::filesystem::path path_;
  std::size_t line_bytes_max_;
  std::string buffer_;  // its bytes begin_ … end_ have not been given yet
  std::size_t begin_ = 0, end_ = 0;
  std::uint64_t number_ = 0;
  bool ended_ = false;   // a read has met the end; a terminal would be asked again
  int descriptor_ = -1;  // that of bytes_, where ready() may wait for it
};

}  // namespace tandem
