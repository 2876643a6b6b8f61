// A file that is written piece by piece and takes its place only when it is whole, for content that
// is too long for memory (write_file_atomic() has it at once). Until commit() a file of that name
// stays as it is; without commit() nothing is left.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "runtime/base/file.h"
#include "runtime/base/result.h"

namespace tandem {

// One thread at a time.
class ReplacingFile {
 public:
  // Makes the temporary file beside `path`, whose folder must exist; a symbolic link is followed.
  // Errors: something else than a regular file is at `path`; the folder cannot be written.
  static Result<ReplacingFile> create(const std::filesystem::path& path);
  ReplacingFile(ReplacingFile&& other) noexcept;
  ReplacingFile& operator=(ReplacingFile&&) = delete;
  ~ReplacingFile();

  Result<void> write(std::string_view piece);  // an Error, as of a full disk, names the file
  // Waits for the disk and puts the file in its place.
  Result<void> commit();
  std::uint64_t bytes() const { return bytes_; }

 private:
  ReplacingFile(OwnedFd fd, std::filesystem::path path, std::filesystem::path temporary)
      : fd_(std::move(fd)), path_(std::move(path)), temporary_(std::move(temporary)) {}

  OwnedFd fd_;
  std::filesystem::path path_, temporary_;  // temporary_ is empty once it is gone
  std::uint64_t bytes_ = 0;
};

}  // namespace tandem
