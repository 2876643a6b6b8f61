// One version on its way into a subscriber's buffer, or being verified where the publisher left it:
// how many bytes have arrived, and their checksum so far. The implementation of a family supplies
// the bytes. Not thread-safe; the buffer is borrowed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "runtime/base/digest.h"
#include "runtime/base/ids.h"
#include "runtime/base/result.h"
#include "runtime/weights/weight_ends.h"

namespace tandem::weights {

class VersionCopy {
 public:
  VersionCopy(PolicyVersion version, std::uint64_t checksum, std::span<std::byte> buffer);
  // Copies in place, without a buffer: take() is given parts of the version itself.
  VersionCopy(PolicyVersion version, std::uint64_t checksum, std::uint64_t bytes_total)
      : version_(version), checksum_(checksum), bytes_total_(bytes_total) {}

  // The version that is copied, and its checksum as it was published.
  PolicyVersion version() const { return version_; }
  std::uint64_t checksum() const { return checksum_; }
  std::uint64_t offset() const { return done_; }  // bytes taken so far
  bool in_place() const { return buffer_.empty(); }
  // Whether all bytes are taken; verify() then says whether they are right.
  bool complete() const { return done_ == bytes_total_; }

  // The size of the next part: at most bytes_max, and at least one byte while any is missing.
  std::uint64_t next_bytes(std::uint64_t bytes_max) const;
  // The next part of the buffer, of next_bytes(); not in place. The caller fills the beginning of
  // it and passes that to take(), which adds it to the checksum. Parts must come in order.
  std::span<std::byte> next(std::uint64_t bytes_max) const;
  void take(std::span<const std::byte> arrived);

  UpdateProgress progress() const;
  // With all bytes taken (CHECKed): kInvalid where the checksum differs from the published one.
  // `family` names the weights in the error.
  Result<void> verify(const std::string& family) const;

 private:
  PolicyVersion version_;
  std::uint64_t checksum_;
  std::span<std::byte> buffer_;  // empty: in place
  std::uint64_t bytes_total_;
  std::uint64_t done_ = 0;
  Checksum64 arrived_;  // the checksum of the first done_ bytes
};

}  // namespace tandem::weights
