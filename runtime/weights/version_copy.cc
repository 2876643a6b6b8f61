#include "runtime/weights/version_copy.h"

#include <algorithm>

namespace tandem::runtime {

VersionCopy::VersionCopy(PolicyVersion version, std::uint64_t checksum, std::span<std::byte> buffer)
    : version_(version), checksum_(checksum), buffer_(buffer) {}

std::span<std::byte> VersionCopy::next(std::uint64_t bytes_max) const {
  const std::uint64_t rest = buffer_.size() - done_;
  return buffer_.subspan(done_, std::min(rest, std::max<std::uint64_t>(bytes_max, 1)));
}

void VersionCopy::take(std::span<const std::byte> arrived) {
  CHECK(arrived.size() <= buffer_.size() - done_);
  arrived_.update(arrived);
  done_ += arrived.size();
}

UpdateProgress VersionCopy::progress() const {
  return {.bytes_done = done_, .bytes_total = buffer_.size(), .complete = done_ == buffer_.size()};
}

Result<void> VersionCopy::verify(const std::string& family) const {
  CHECK(done_ == buffer_.size());
  if (arrived_.value() == checksum_) return {};
  return Error{.message = "policy version " + std::to_string(version_.value) + " of " + family +
                          " is damaged: its checksum differs from the published one",
               .where = {},
               .help = {}};
}

}  // namespace tandem::runtime
