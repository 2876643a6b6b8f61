// What travels on a bulk socket: a BulkMessage and, with a PutOpen or a Chunk, bytes as a second
// part. The payloads of a request are one stream, cut into chunks without regard to their borders;
// both sides know the sizes, so a chunk says only where in the stream it begins.
//
//   put:  PutOpen + first chunk, Chunk … →   ← Ack per chunk …, Stored
//   get:  GetOpen →   ← Chunk …   Ack per chunk →
// The side that sends chunks has at most kBulkChunksInFlight without an Ack. Failed ends a request,
// Abort says that nobody waits for it any more.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/result.h"
#include "runtime/net/bulk.h"
#include "runtime/wire/codec.h"

namespace tandem::runtime {

using BulkRequest = Id<struct BulkRequestTag>;  // of one client

struct PutOpen {
  BulkRequest request;
  std::vector<std::uint64_t> sizes;
  std::vector<std::uint64_t> checksums;
};
TANDEM_WIRE(PutOpen, request, sizes, checksums)

struct Stored {
  BulkRequest request;
  std::vector<PayloadRef> refs;
};
TANDEM_WIRE(Stored, request, refs)

struct GetOpen {
  BulkRequest request;
  std::vector<PayloadRef> refs;
};
TANDEM_WIRE(GetOpen, request, refs)

struct Chunk {
  BulkRequest request;
  std::uint64_t offset = 0;  // in the stream
};
TANDEM_WIRE(Chunk, request, offset)

struct Ack {
  BulkRequest request;
  std::uint32_t chunks = 0;
};
TANDEM_WIRE(Ack, request, chunks)

struct Failed {
  BulkRequest request;
  Error error;
};
TANDEM_WIRE(Failed, request, error)

struct Abort {
  BulkRequest request;
};
TANDEM_WIRE(Abort, request)

using BulkMessage = std::variant<PutOpen, Stored, GetOpen, Chunk, Ack, Failed, Abort>;

// A head with its lists, and one chunk.
inline constexpr std::uint64_t kBulkMessageBytesMax = 8 << 20;
inline constexpr Duration kBulkTick =
    std::chrono::milliseconds(20);  // how often deadlines are looked at

// A place in a stream, moving forward.
class StreamCursor {
 public:
  struct Piece {
    std::size_t payload = 0;
    std::uint64_t offset = 0;  // in that payload
    std::uint64_t bytes = 0;
  };

  explicit StreamCursor(std::vector<std::uint64_t> sizes);
  const std::vector<std::uint64_t>& sizes() const { return sizes_; }
  std::uint64_t position() const { return position_; }
  std::uint64_t total() const { return total_; }
  std::uint64_t left() const { return total_ - position_; }
  std::uint64_t next_chunk_bytes() const {
    return std::min<std::uint64_t>(left(), kBulkChunkBytesMax);
  }
  // The next `bytes` (≤ left()) of the stream, piece by piece; moves behind them.
  std::vector<Piece> take(std::uint64_t bytes);

 private:
  std::vector<std::uint64_t> sizes_;
  std::size_t payload_ = 0;
  std::uint64_t offset_ = 0;
  std::uint64_t position_ = 0;
  std::uint64_t total_ = 0;
};

// Whether a request of payloads of these sizes is within the limits.
Result<void> check_bulk_sizes(const std::vector<std::uint64_t>& sizes);
std::vector<std::uint64_t> sizes_of(const std::vector<PayloadRef>& refs);
std::string to_string(const PayloadRef& ref);  // "vm/segment 3 at 4096 (17 bytes)"

}  // namespace tandem::runtime
