#include "runtime/weights/shm_reader.h"

#include <unistd.h>

#include <string>

namespace tandem::weights {
namespace {

// A version can look absent while a publisher takes a claim back; after so many looks it is absent.
constexpr int kPinAttemptsMax = 16;

}  // namespace

Result<ShmReader> ShmReader::enter(const ShmSegment& segment, const WeightsConfig& config,
                                   const ShmReader* last) {
  for (std::uint32_t i = last == nullptr ? 0 : last->entry_ + 1; i < kReadersMax; ++i) {
    if (!segment.lock_byte(i)) continue;
    segment.header().reader[i].pinned = 0;  // left by a reader that has ended
    segment.header().reader[i].pid = ::getpid();
    return ShmReader(segment, i);
  }
  return Error{
      .message = std::to_string(kReadersMax) + " readers of " + config.name + " exist already",
      .where = {},
      .help = {}};
}

// See shm_segment.h for why this and a publisher's claim cannot both succeed.
std::optional<std::size_t> ShmReader::pin(PolicyVersion version) const {
  SegmentHeader& header = segment_->header();
  std::atomic<std::uint32_t>& pinned = header.reader[entry_].pinned;
  for (int attempt = 0; attempt < kPinAttemptsMax; ++attempt) {
    for (std::uint32_t i = 0; i < header.slots; ++i) {
      if (offered_version(header.slot[i]) != version) continue;
      pinned = i + 1;
      // The slot is looked at again after the pin: a publisher that claimed the slot before it
      // could see the pin has made the sequence odd by now.
      if (offered_version(header.slot[i]) == version) return i;
      pinned = 0;
    }
  }
  return std::nullopt;
}

void ShmReader::unpin() const {
  segment_->header().reader[entry_].pinned = 0;
  segment_->tell_release();
}

}  // namespace tandem::weights
