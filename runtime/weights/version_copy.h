// One version on its way into a subscriber's buffer, or being verified where it lies: how far it
// is, and its checksum so far. Where the bytes come from is the implementation's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "runtime/base/digest.h"
#include "runtime/base/ids.h"
#include "runtime/base/result.h"
#include "runtime/weights/weights.h"

namespace tandem::runtime {

class VersionCopy {
 public:
  VersionCopy(PolicyVersion version, std::uint64_t checksum, std::span<std::byte> buffer);
  // Without a buffer: take() is given parts of the version itself.
  VersionCopy(PolicyVersion version, std::uint64_t checksum, std::uint64_t bytes_total)
      : version_(version), checksum_(checksum), bytes_total_(bytes_total) {}

  PolicyVersion version() const { return version_; }
  std::uint64_t checksum() const { return checksum_; }  // as published
  std::uint64_t offset() const { return done_; }
  bool in_place() const { return buffer_.empty(); }
  bool complete() const { return done_ == bytes_total_; }

  // How many bytes come next: at most bytes_max, and at least one while any is missing.
  std::uint64_t next_bytes(std::uint64_t bytes_max) const;
  // The next part of the buffer to fill, at most bytes_max and at least one byte; take() then
  // accounts for the beginning of it that has been filled, and now holds `arrived`.
  std::span<std::byte> next(std::uint64_t bytes_max) const;
  void take(std::span<const std::byte> arrived);

  UpdateProgress progress() const;
  // With all bytes taken: whether they are the published ones.
  Result<void> verify(const std::string& family) const;

 private:
  PolicyVersion version_;
  std::uint64_t checksum_;
  std::span<std::byte> buffer_;  // empty: in place
  std::uint64_t bytes_total_;
  std::uint64_t done_ = 0;
  Checksum64 arrived_;  // the first done_ bytes
};

}  // namespace tandem::runtime
