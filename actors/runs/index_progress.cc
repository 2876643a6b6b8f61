// The mark of how far an index has read names the file by its inode and by some of its bytes
// (LineMark): a file that was replaced or cut is noticed, and all is read anew.
#include "actors/runs/index_progress.h"

#include <cstring>
#include <system_error>
#include <utility>

#include "runtime/base/digest.h"
#include "runtime/base/file.h"
#include "runtime/base/log.h"

namespace tandem::runs {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kCopyAgainBytes = std::uint64_t{16} << 20;  // new bytes of the indexed file

std::uint64_t checksum_of(std::string_view bytes) {
  return checksum64(std::as_bytes(std::span(bytes.data(), bytes.size())));
}

// Whether an index that has read to `now`, and whose copy has read to `copied`, is due for another.
bool is_due(const LineMark& now, const LineMark& copied, bool over) {
  const bool continued = now.inode == copied.inode && now.offset >= copied.offset;
  const std::uint64_t lacks = continued ? now.offset - copied.offset : now.offset;
  return lacks >= kCopyAgainBytes || (over && lacks > 0);
}

// Replaces `path` whole, 0600.
Result<void> write_copy(const fs::path& path, const std::string& bytes) {
  const std::uint64_t checksum = checksum_of(bytes);
  // The file is the checksum, then the bytes that it covers.
  std::string content(sizeof checksum, '\0');
  std::memcpy(content.data(), &checksum, sizeof checksum);
  content += bytes;
  if (auto written = write_file_atomic(path, content); !written) return written;
  std::error_code error;
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write, error);
  if (error)
    return Error{.message = "cannot protect the index: " + error.message(), .where = path.string()};
  return {};
}

}  // namespace

std::optional<std::string> copied_bytes(const fs::path& path) {
  auto file = LineFile::open(path);
  if (!file || file->size() > kIndexCopyBytesMax) return std::nullopt;
  const auto content = file->read(0, file->size());
  std::uint64_t checksum = 0;
  if (!content || content->size() < sizeof checksum) return std::nullopt;
  std::memcpy(&checksum, content->data(), sizeof checksum);
  std::string bytes = content->substr(sizeof checksum);
  if (checksum_of(bytes) != checksum) return std::nullopt;
  return bytes;
}

Result<bool> IndexProgress::read_on(const fs::path& run_dir, std::uint64_t bytes_max,
                                    const IndexFunctions& index) {
  const auto forget = [&] {
    read_to_ = {};
    index.clear();
  };
  auto file = LineFile::open(run_dir / lines_);
  if (!file) {
    forget();
    if (file.error().code == ErrorCode::kNotFound) return true;
    return file.error();
  }
  if (!std::exchange(looked_for_copy_, true)) {
    if (const auto had_read = index.load(run_dir / copy_))
      read_to_ = copied_to_ = *had_read;
    else
      forget();
  }
  if (!file->continues(read_to_)) forget();
  const auto read = file->read_lines(read_to_, bytes_max, index.take);
  bytes_read_ += file->bytes_read();
  if (!read) return read.error();
  read_to_ = *read;
  // An unfinished last line is not read, and is no reason to call the index incomplete.
  return read->offset + kLineBytesMax >= file->size();
}

void IndexProgress::keep(const fs::path& run_dir, bool over,
                         const std::function<std::string(const LineMark&)>& encode) {
  if (!is_due(read_to_, copied_to_, over)) return;
  copied_to_ = read_to_;  // also if the write fails: each request would only try again in vain
  if (const auto done = write_copy(run_dir / copy_, encode(read_to_)); !done)
    log::info("event=index_not_kept message=\"{}\"", done.error().message);
}

}  // namespace tandem::runs
