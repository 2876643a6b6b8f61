#include "runtime/base/line_reader.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace tandem {
namespace {

constexpr std::size_t kReadBytes = std::size_t{1} << 18;  // the size of one read

}  // namespace

Result<LineReader> LineReader::open(const std::filesystem::path& path, std::size_t line_bytes_max) {
  auto file = open_regular(path);
  if (!file) return file.error();
  return LineReader(std::move(file->fd), path, line_bytes_max);
}

LineReader::LineReader(OwnedFd fd, std::filesystem::path path, std::size_t line_bytes_max)
    : fd_(std::move(fd)), path_(std::move(path)), line_bytes_max_(line_bytes_max) {}

Result<bool> LineReader::fill() {
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= std::exchange(begin_, 0);
  }
  // Doubled for a long line, so that it is moved a few times only.
  if (buffer_.size() - end_ < kReadBytes)
    buffer_.resize(std::max(2 * buffer_.size(), end_ + kReadBytes));
  for (;;) {
    const ssize_t got = ::read(fd_.get(), buffer_.data() + end_, kReadBytes);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return file_error("read file", path_);
    end_ += static_cast<std::size_t>(got);
    bytes_read_ += static_cast<std::uint64_t>(got);
    return got > 0;
  }
}

Result<std::optional<std::string_view>> LineReader::next() {
  std::size_t searched = 0;  // bytes behind begin_ that hold no newline
  for (;;) {
    const std::string_view held(buffer_.data() + begin_, end_ - begin_);
    const std::size_t newline = held.find('\n', searched);
    const bool ends = newline != held.npos;
    if (!ends && held.size() <= line_bytes_max_) {
      searched = held.size();
      const auto more = fill();
      if (!more) return more.error();
      if (*more) continue;
      if (begin_ == end_) return std::optional<std::string_view>();
    }
    // fill() may have moved the bytes.
    const std::string_view line(buffer_.data() + begin_, ends ? newline : end_ - begin_);
    ++number_;
    if (line.size() > line_bytes_max_)
      return Error{
          .code = ErrorCode::kInvalid,
          .message = "the line has more than " + std::to_string(line_bytes_max_) + " bytes",
          .where = path_.string() + ":" + std::to_string(number_)};
    begin_ += line.size() + (ends ? 1 : 0);
    return std::optional(line);
  }
}

}  // namespace tandem
