#include "runtime/payload/bulk_messages.h"

#include "runtime/base/check.h"

namespace tandem::payload {

StreamCursor::StreamCursor(std::vector<std::uint64_t> sizes) : sizes_(std::move(sizes)) {
  for (const std::uint64_t size : sizes_) total_ += size;
}

std::vector<StreamCursor::Piece> StreamCursor::take(std::uint64_t bytes) {
  CHECK(bytes <= left());
  std::vector<Piece> pieces;
  position_ += bytes;
  while (bytes > 0) {
    const std::uint64_t here = std::min(bytes, sizes_[payload_] - offset_);
    // An empty payload has no piece.
    if (here > 0) pieces.push_back({payload_, offset_, here});
    bytes -= here;
    offset_ += here;
    // The cursor moves on only if bytes are to come: behind the last payload there is none to move
    // to.
    if (offset_ == sizes_[payload_] && bytes > 0) {
      ++payload_;
      offset_ = 0;
    }
  }
  return pieces;
}

Result<void> check_bulk_sizes(const std::vector<std::uint64_t>& sizes) {
  std::uint64_t room = kBulkRequestBytesMax;
  bool fits = sizes.size() <= kBulkPayloadsMax;
  for (const std::uint64_t size : sizes) {
    // Each size is compared with the room left, and the sizes are never summed: the sizes of a peer
    // may overflow any sum.
    fits = fits && size <= room;
    if (fits) room -= size;
  }
  if (fits) return {};
  return Error{ErrorCode::kInvalid, "a bulk request of " + std::to_string(sizes.size()) +
                                        " payloads is over its limit of " +
                                        std::to_string(kBulkPayloadsMax) + " payloads and " +
                                        std::to_string(kBulkRequestBytesMax) + " bytes"};
}

std::vector<std::uint64_t> sizes_of(const std::vector<wire::PayloadRef>& refs) {
  std::vector<std::uint64_t> sizes;
  for (const wire::PayloadRef& ref : refs) sizes.push_back(ref.bytes);
  return sizes;
}

std::string to_string(const wire::PayloadRef& ref) {
  return ref.node + "/segment " + std::to_string(ref.segment) + " at " +
         std::to_string(ref.offset) + " (" + std::to_string(ref.bytes) + " bytes)";
}

}  // namespace tandem::payload
