#include "runtime/base/line_file.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "runtime/base/digest.h"

namespace tandem {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{1} << 18;  // the size of one read

std::uint64_t checksum_of(const std::string& text) {
  return checksum64(std::as_bytes(std::span(text.data(), text.size())));
}

}  // namespace

Result<LineFile> LineFile::open(const std::filesystem::path& path) {
  // Without a link's refusal it could point at a file that the caller was not to show.
  auto opened = open_regular(path, Links::kRefused);
  if (!opened) {
    Error error = opened.error();
    if (error.os_error == ENOENT || error.os_error == ENOTDIR) error.code = ErrorCode::kNotFound;
    return error;
  }
  LineFile file(std::move(opened->fd), path);
  file.inode_ = opened->inode;
  file.size_ = opened->bytes;
  return file;
}

Result<std::string> LineFile::read(std::uint64_t offset, std::size_t bytes) {
  std::string text(bytes, '\0');
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t got =
        ::pread(fd_.get(), text.data() + done, bytes - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return file_error("read file", path_);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  bytes_read_ += done;
  text.resize(done);
  return text;
}

Result<LineMark> LineFile::seal(LineMark mark) {
  const std::uint64_t bytes = std::min<std::uint64_t>(mark.offset, kMarkBytes);
  const auto head = read(0, bytes);
  if (!head) return head.error();
  const auto tail = read(mark.offset - bytes, bytes);
  if (!tail) return tail.error();
  mark.inode = inode_;
  mark.head = checksum_of(*head);
  mark.tail = checksum_of(*tail);
  return mark;
}

bool LineFile::continues(const LineMark& mark) {
  if (mark.offset == 0) return true;
  if (mark.inode != inode_ || mark.offset > size_) return false;
  const auto sealed = seal(mark);
  return sealed && sealed->head == mark.head && sealed->tail == mark.tail;
}

Result<LineMark> LineFile::read_lines(LineMark mark, std::uint64_t bytes_max, const Take& take) {
  // mark.offset is always the start of a line, or lies in a long line; `at` is ahead of it by the
  // bytes in `held`, which belong to a line whose end has not been read yet.
  std::string held;
  std::uint64_t at = mark.offset;
  const std::uint64_t end = at + std::min(bytes_max, size_ > at ? size_ - at : 0);
  const std::uint64_t begin = at;
  while (at < end) {
    const auto block = read(at, std::min<std::uint64_t>(end - at, kBlockBytes));
    if (!block) return block.error();
    if (block->empty()) break;  // the file was shortened after open()
    at += block->size();
    std::string_view rest = *block;
    for (std::size_t newline; (newline = rest.find('\n')) != std::string_view::npos;) {
      held.append(rest.substr(0, newline));
      rest.remove_prefix(newline + 1);
      if (!mark.inside_long_line && held.size() <= kLineBytesMax) take(mark.offset, held);
      mark.offset += held.size() + 1;
      mark.inside_long_line = false;
      held.clear();
    }
    held.append(rest);
    // A line over the limit is dropped here, in parts, so that `held` never exceeds the limit by
    // more than a block.
    if (held.size() <= kLineBytesMax && !mark.inside_long_line) continue;
    mark.inside_long_line = true;
    mark.offset += held.size();
    held.clear();
  }
  // A mark that did not move keeps its checksums: sealing it again would read the file in vain.
  return mark.offset == begin && mark.inode != 0 ? mark : seal(mark);
}

}  // namespace tandem
