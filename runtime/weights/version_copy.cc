#include "runtime/weights/version_copy.h"

#include <xxhash.h>

#include <algorithm>

namespace tandem::runtime {

void VersionCopy::HashDeleter::operator()(void* state) const {
  XXH3_freeState(static_cast<XXH3_state_t*>(state));
}

VersionCopy::VersionCopy(PolicyVersion version, std::uint64_t checksum, std::span<std::byte> buffer)
    : version_(version), checksum_(checksum), buffer_(buffer), hash_(XXH3_createState()) {
  CHECK(hash_ != nullptr);
  CHECK(XXH3_64bits_reset(static_cast<XXH3_state_t*>(hash_.get())) == XXH_OK);
}

std::span<std::byte> VersionCopy::next(std::uint64_t bytes_max) const {
  const std::uint64_t rest = buffer_.size() - done_;
  return buffer_.subspan(done_, std::min(rest, std::max<std::uint64_t>(bytes_max, 1)));
}

void VersionCopy::take(std::span<const std::byte> arrived) {
  CHECK(arrived.size() <= buffer_.size() - done_);
  // Hashed just after it was written, while it is in the cache.
  CHECK(XXH3_64bits_update(static_cast<XXH3_state_t*>(hash_.get()), arrived.data(),
                           arrived.size()) == XXH_OK);
  done_ += arrived.size();
}

UpdateProgress VersionCopy::progress() const {
  return {.bytes_done = done_, .bytes_total = buffer_.size(), .complete = done_ == buffer_.size()};
}

Result<void> VersionCopy::verify(const std::string& family) const {
  CHECK(done_ == buffer_.size());
  if (XXH3_64bits_digest(static_cast<const XXH3_state_t*>(hash_.get())) == checksum_) return {};
  return Error{.message = "policy version " + std::to_string(version_.value) + " of " + family +
                          " is damaged: its checksum differs from the published one",
               .where = {},
               .help = {}};
}

}  // namespace tandem::runtime
