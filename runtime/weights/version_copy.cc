#include "runtime/weights/version_copy.h"

#include <algorithm>

namespace tandem::weights {

VersionCopy::VersionCopy(PolicyVersion version, std::uint64_t checksum, std::span<std::byte> buffer)
    : version_(version), checksum_(checksum), buffer_(buffer), bytes_total_(buffer.size()) {}

std::uint64_t VersionCopy::next_bytes(std::uint64_t bytes_max) const {
  // A bytes_max of 0 counts as 1, so that a caller that allows no byte still makes progress.
  return std::min(bytes_total_ - done_, std::max<std::uint64_t>(bytes_max, 1));
}

std::span<std::byte> VersionCopy::next(std::uint64_t bytes_max) const {
  return buffer_.subspan(done_, next_bytes(bytes_max));
}

void VersionCopy::take(std::span<const std::byte> arrived) {
  CHECK(arrived.size() <= bytes_total_ - done_);
  arrived_.update(arrived);
  done_ += arrived.size();
}

UpdateProgress VersionCopy::progress() const {
  return {.bytes_done = done_, .bytes_total = bytes_total_, .complete = complete()};
}

Result<void> VersionCopy::verify(const std::string& family) const {
  CHECK(complete());
  if (arrived_.value() == checksum_) return {};
  return Error{.code = ErrorCode::kInvalid,
               .message = "policy version " + std::to_string(version_.value) + " of " + family +
                          " is damaged: its checksum differs from the published one",
               .where = {},
               .help = {}};
}

}  // namespace tandem::weights
