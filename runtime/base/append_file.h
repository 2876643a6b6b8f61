// A file that grows at its end by whole pieces, such as lines.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <utility>

#include "runtime/base/file.h"
#include "runtime/base/result.h"

namespace tandem {

// One writer at a time. Used by one thread.
class AppendFile {
 public:
  AppendFile() = default;  // open() before the first append()
  // Makes the file where there is none. Errors: something else than a regular file is there; the
  // folder cannot be written.
  static Result<AppendFile> open(const std::filesystem::path& path);

  // The piece survives the end of this process, not that of the machine. After an Error, such as of
  // a full disk (waits_for_disk()), the file is as it was, or is made so before the next piece.
  Result<void> append(std::string_view piece);
  std::uint64_t bytes() const { return bytes_; }

 private:
  AppendFile(OwnedFd fd, std::filesystem::path path, std::uint64_t bytes)
      : fd_(std::move(fd)), path_(std::move(path)), bytes_(bytes) {}

  bool take_back();

  OwnedFd fd_;
  std::filesystem::path path_;
  std::uint64_t bytes_ = 0;  // of whole pieces
  bool torn_ = false;        // behind them may be a part of one
};

}  // namespace tandem
