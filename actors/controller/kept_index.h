// An index that a run directory keeps for later readers: bytes with their checksum. It can always
// be made again from the file that it indexes, so a damaged one is as good as none.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "runtime/base/line_file.h"
#include "runtime/base/result.h"
#include "runtime/wire/codec.h"

namespace tandem {
TANDEM_WIRE(LineMark, inode, offset, head, tail, inside_long_line)
}  // namespace tandem

namespace tandem::actors {

inline constexpr std::uint64_t kKeptBytesMax = std::uint64_t{128} << 20;

// Whether an index that has read up to `now`, and is kept up to `kept`, is to be kept again: when
// the run is over and anything is new, before that when reading it again would take a while.
bool is_due(const LineMark& now, const LineMark& kept, bool over);

// Replaces `path` whole, 0600.
Result<void> keep_bytes(const std::filesystem::path& path, const std::string& bytes);
// None where nothing is kept, it is damaged, too large, or no regular file.
std::optional<std::string> kept_bytes(const std::filesystem::path& path);

// As a wired struct.
template <class T>
std::optional<T> kept_value(const std::filesystem::path& path) {
  const auto bytes = kept_bytes(path);
  if (!bytes) return std::nullopt;
  auto value = runtime::decode<T>(
      *bytes, {.message_bytes_max = kKeptBytesMax, .decoded_bytes_max = 4 * kKeptBytesMax});
  if (!value) return std::nullopt;
  return std::move(*value);
}

}  // namespace tandem::actors
