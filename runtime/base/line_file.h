// A file of lines to which another process appends, read on from a mark, so that a reader that
// comes back reads only the new lines. A mark holds the file's inode, the checksum of the first
// bytes and the checksum of the bytes before the mark. With these the reader recognizes a file that
// was replaced, shortened or overwritten meanwhile, and begins again.
//
// Only regular files are opened, and symbolic links are not followed. The meaning of the lines is
// the caller's. An object is used by one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "runtime/base/file.h"
#include "runtime/base/result.h"

namespace tandem {

// A longer line is skipped, so that a reader's memory is bounded whatever is in the file.
inline constexpr std::size_t kLineBytesMax = std::size_t{1} << 20;

// How far a reader has come. A default LineMark stands at the start of any file. A reader may keep
// the mark in a file of its own.
struct LineMark {
  std::uint64_t inode = 0;        // 0: the default mark
  std::uint64_t offset = 0;       // the first byte that has not been read
  std::uint64_t head = 0;         // checksum of the first min(offset, kMarkBytes) bytes of the file
  std::uint64_t tail = 0;         // checksum of as many bytes just before `offset`
  bool inside_long_line = false;  // `offset` lies in a line that is skipped
};
inline constexpr std::size_t kMarkBytes = 4096;  // per checksum

class LineFile {
 public:
  // Errors: kNotFound where `path` does not exist, kFailed where it is not a regular file or cannot
  // be read.
  static Result<LineFile> open(const std::filesystem::path& path);

  // The file's bytes at the time of open(). Bytes that are appended later are seen by the next
  // open().
  std::uint64_t size() const { return size_; }
  // How many bytes this object has read, those for the checksums of marks included.
  std::uint64_t bytes_read() const { return bytes_read_; }

  // Whether this is the file that `mark` was made of, with the same bytes where the mark has
  // checksums. False means that a reader has to begin again.
  bool continues(const LineMark& mark);
  // Gives every whole line after `mark` to `take`, with the line's offset and without its newline,
  // and returns the mark behind the last one. Ends at size(), or after `bytes_max` bytes: these
  // must exceed kLineBytesMax, since a line that does not fit into them would never be passed. A
  // last line without a newline is left for a later call. `take` must not keep the view.
  using Take = std::function<void(std::uint64_t offset, std::string_view line)>;
  Result<LineMark> read_lines(LineMark mark, std::uint64_t bytes_max, const Take& take);
  // Up to `bytes` from `offset`; fewer at the end of the file.
  Result<std::string> read(std::uint64_t offset, std::size_t bytes);

 private:
  LineFile(OwnedFd fd, std::filesystem::path path) : fd_(std::move(fd)), path_(std::move(path)) {}
  // `mark` with the inode and the checksums that belong to its offset.
  Result<LineMark> seal(LineMark mark);

  OwnedFd fd_;
  std::filesystem::path path_;
  std::uint64_t inode_ = 0, size_ = 0, bytes_read_ = 0;
};

}  // namespace tandem
