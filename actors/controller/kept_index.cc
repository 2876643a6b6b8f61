#include "actors/controller/kept_index.h"

#include <cstring>
#include <system_error>

#include "runtime/base/digest.h"
#include "runtime/base/file.h"

namespace tandem::actors {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kKeepAgainBytes = std::uint64_t{16} << 20;  // of the indexed file

std::uint64_t checksum_of(std::string_view bytes) {
  return checksum64(std::as_bytes(std::span(bytes.data(), bytes.size())));
}

}  // namespace

bool is_due(const LineMark& now, const LineMark& kept, bool over) {
  const bool continued = now.inode == kept.inode && now.offset >= kept.offset;
  const std::uint64_t lacks = continued ? now.offset - kept.offset : now.offset;
  return lacks >= kKeepAgainBytes || (over && lacks > 0);
}

Result<void> keep_bytes(const fs::path& path, const std::string& bytes) {
  const std::uint64_t checksum = checksum_of(bytes);
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

std::optional<std::string> kept_bytes(const fs::path& path) {
  auto file = LineFile::open(path);
  if (!file || file->size() > kKeptBytesMax) return std::nullopt;
  const auto content = file->read(0, file->size());
  std::uint64_t checksum = 0;
  if (!content || content->size() < sizeof checksum) return std::nullopt;
  std::memcpy(&checksum, content->data(), sizeof checksum);
  std::string bytes = content->substr(sizeof checksum);
  if (checksum_of(bytes) != checksum) return std::nullopt;
  return bytes;
}

}  // namespace tandem::actors
