// Bytes that are read once, from the first to the last: a file, what a decompressor makes of one,
// or what a child program writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "runtime/base/file.h"
#include "runtime/base/result.h"

namespace tandem {

class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // Reads into `out`, which is not empty, and returns how many bytes it got: at least one, or 0 at
  // the end, however often it is asked there. After an error the source must not be read on.
  virtual Result<std::size_t> read(std::span<char> out) = 0;
  // How many bytes of the file beneath have been taken so far, for a notice of progress.
  virtual std::uint64_t bytes_read() const = 0;
};

// A file that is open for reading, from the descriptor's position on; `path` is for errors.
std::unique_ptr<ByteSource> file_bytes(OwnedFd fd, std::filesystem::path path);

}  // namespace tandem
