// An index over a file of lines in a run directory: how far the index has read, and the copy of
// itself that it leaves there for later readers, as bytes with their checksum. The copy can always
// be made again from the lines, so a damaged copy counts as a missing one. MetricsIndex and
// SampleIndex know the meaning of the lines.
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

namespace tandem::runs {

inline constexpr std::uint64_t kIndexCopyBytesMax = std::uint64_t{128} << 20;

// The content of a copy. nullopt where there is none, or it is damaged, too large, or no regular
// file.
std::optional<std::string> copied_bytes(const std::filesystem::path& path);

// copied_bytes() decoded as a wired struct; nullopt also where they are not one.
template <class T>
std::optional<T> read_copy(const std::filesystem::path& path) {
  const auto bytes = copied_bytes(path);
  if (!bytes) return std::nullopt;
  auto value = wire::decode<T>(*bytes, {.message_bytes_max = kIndexCopyBytesMax,
                                        .decoded_bytes_max = 4 * kIndexCopyBytesMax});
  if (!value) return std::nullopt;
  return std::move(*value);
}

// How one index reads and forgets its lines.
struct IndexFunctions {
  // Takes up the copy at this path and returns how far that copy had read; nullopt where there is
  // no copy that fits.
  std::function<std::optional<LineMark>(const std::filesystem::path& copy)> load;
  std::function<void()> clear;  // forgets all lines
  LineFile::Take take;
};

class IndexProgress {
 public:
  // The names of both files within a run directory, such as "metrics.jsonl" and "metrics.index".
  IndexProgress(std::string lines, std::string copy)
      : lines_(std::move(lines)), copy_(std::move(copy)) {}

  // Gives index.take the lines that the index does not have. The first call begins with the copy;
  // if the file is another one than before, all is read anew. Reads at most about `bytes_max`
  // bytes, and returns false if it did not come to the file's end. A missing file has no lines.
  Result<bool> read_on(const std::filesystem::path& run_dir, std::uint64_t bytes_max,
                       const IndexFunctions& index);
  // Writes a copy (mode 0600) if the last one lacks so much that reading it again would take a
  // while, or lacks anything and the run is over. A directory that cannot be written is no error:
  // only the next reader's time is lost.
  void keep(const std::filesystem::path& run_dir, bool over,
            const std::function<std::string(const LineMark& read_to)>& encode);
  std::uint64_t bytes_read() const { return bytes_read_; }  // by all calls of read_on

 private:
  const std::string lines_, copy_;
  LineMark read_to_, copied_to_;
  bool looked_for_copy_ = false;
  std::uint64_t bytes_read_ = 0;
};

}  // namespace tandem::runs
