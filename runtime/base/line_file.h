// A file of lines that somebody appends to, read on from a mark, so that a reader who comes back
// reads only what is new. A mark names the file's inode and the checksums of its first bytes and of
// those before the mark: a file that was replaced, shortened or overwritten is known as another.
//
// Only regular files are opened, and symbolic links are not followed. Not here: the lines' meaning.
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

inline constexpr std::size_t kLineBytesMax = std::size_t{1} << 20;  // a longer line is left out

struct LineMark {
  std::uint64_t inode = 0;
  std::uint64_t offset = 0;       // of the first byte that has not been read
  std::uint64_t head = 0;         // checksum of the first bytes, at most kMarkBytes before `offset`
  std::uint64_t tail = 0;         // checksum of the last bytes before `offset`
  bool inside_long_line = false;  // `offset` lies in a line that is left out
};
inline constexpr std::size_t kMarkBytes = 4096;

class LineFile {
 public:
  // Errors: kNotFound where nothing is there, kFailed where it is no regular file or unreadable.
  static Result<LineFile> open(const std::filesystem::path& path);

  std::uint64_t size() const { return size_; }
  std::uint64_t bytes_read() const { return bytes_read_; }  // by this object, marks included

  // Whether what was read up to `mark` is still there as it was.
  bool continues(const LineMark& mark);
  // Gives every whole line after `mark` to `take`, with its offset and without its newline, until
  // the file ends or about `bytes_max` are read. A last line without a newline waits.
  using Take = std::function<void(std::uint64_t offset, std::string_view line)>;
  Result<LineMark> read_lines(LineMark mark, std::uint64_t bytes_max, const Take& take);
  // Up to `bytes` from `offset`; fewer at the end.
  Result<std::string> read(std::uint64_t offset, std::size_t bytes);

 private:
  LineFile(OwnedFd fd, std::filesystem::path path) : fd_(std::move(fd)), path_(std::move(path)) {}
  Result<LineMark> seal(LineMark mark);

  OwnedFd fd_;
  std::filesystem::path path_;
  std::uint64_t inode_ = 0, size_ = 0, bytes_read_ = 0;
};

}  // namespace tandem
