// An index over a file of lines in a run directory: how far it has read, and the copy of it that it
// leaves there for later readers, bytes with their checksum. The copy can always be made again from
// the lines, so a damaged one is as good as none. Not here: what the lines mean.
//
// One thread at a time.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "runtime/base/line_file.h"
#include "runtime/base/result.h"
#include "runtime/wire/codec.h"

namespace tandem {
TANDEM_WIRE(LineMark, inode, offset, head, tail, inside_long_line)
}  // namespace tandem

namespace tandem::actors {

inline constexpr std::uint64_t kKeptBytesMax = std::uint64_t{128} << 20;

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

// What differs between indexes.
struct IndexParts {
  // Takes up the copy at this path: how far it had read. None: there is none that fits.
  std::function<std::optional<LineMark>(const std::filesystem::path& copy)> load;
  std::function<void()> clear;  // forgets all lines
  LineFile::Take take;
};

class IndexProgress {
 public:
  // The names within a run directory: "metrics.jsonl" and "metrics.index".
  IndexProgress(std::string lines, std::string copy)
      : lines_(std::move(lines)), copy_(std::move(copy)) {}

  // Takes what the file has that the index does not, beginning with the copy; a file that is
  // another one than before is read anew. At most about `bytes_max` are read: false where it did
  // not come to the file's end. A run without the file has no lines.
  Result<bool> read_on(const std::filesystem::path& run_dir, std::uint64_t bytes_max,
                       const IndexParts& parts);
  // Leaves a copy (0600) where the last one lacks so much that reading it again would take a while,
  // or anything and the run is over. A directory that cannot be written costs nothing but the next
  // reader's time.
  void keep(const std::filesystem::path& run_dir, bool over,
            const std::function<std::string(const LineMark& read_to)>& encode);
  std::uint64_t bytes_read() const { return bytes_read_; }  // by read_on, ever

 private:
  const std::string lines_, copy_;
  LineMark read_to_, copied_to_;
  bool looked_for_copy_ = false;
  std::uint64_t bytes_read_ = 0;
};

}  // namespace tandem::actors
