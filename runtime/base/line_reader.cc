#include "runtime/base/line_reader.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <span>
#include <utility>

namespace tandem {
namespace {

constexpr std::size_t kReadBytes = std::size_t{1} << 18;  // the size of one read

}  // namespace

Result<LineReader> LineReader::open(const std::filesystem::path& path, std::size_t line_bytes_max) {
  auto file = open_regular(path);
  if (!file) return file.error();
  return LineReader(file_bytes(std::move(file->fd), path), path, line_bytes_max);
}

LineReader LineReader::of(OwnedFd fd, const std::filesystem::path& path,
                          std::size_t line_bytes_max) {
  const int descriptor = fd.get();
  LineReader lines(file_bytes(std::move(fd), path), path, line_bytes_max);
  lines.descriptor_ = descriptor;
  return lines;
}

LineReader::LineReader(std::unique_ptr<ByteSource> bytes, std::filesystem::path path,
                       std::size_t line_bytes_max)
    : bytes_(std::move(bytes)), path_(std::move(path)), line_bytes_max_(line_bytes_max) {}

Result<bool> LineReader::fill() {
  if (ended_) return false;
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= std::exchange(begin_, 0);
  }
  // Doubled for a long line, so that it is moved a few times only.
  if (buffer_.size() - end_ < kReadBytes)
    buffer_.resize(std::max(2 * buffer_.size(), end_ + kReadBytes));
  const auto got = bytes_->read(std::span(buffer_).subspan(end_, kReadBytes));
  if (!got) return got.error();
  end_ += *got;
  ended_ = *got == 0;
  return *got > 0;
}

Result<bool> LineReader::ready(Duration wait) {
  if (descriptor_ < 0) return true;
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + wait;
  for (;;) {
    const std::string_view held(buffer_.data() + begin_, end_ - begin_);
    if (ended_ || held.size() > line_bytes_max_ || held.find('\n') != held.npos) return true;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    pollfd readable{.fd = descriptor_, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&readable, 1, static_cast<int>(std::max<std::int64_t>(left, 0)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) return file_error("read file", path_);
    if (ready == 0) return false;
    if (const auto more = fill(); !more) return more.error();
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
