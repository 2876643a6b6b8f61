// The messages of the bulk socket: a BulkMessage and, with a PutOpen or a Chunk, bytes as a second
// part. The payloads of a request are one stream, cut into chunks without regard to the borders of
// payloads. Both sides know the sizes, so a chunk says only where in the stream it begins.
//
//   put:  PutOpen + first chunk, Chunk … →   ← Ack per chunk …, Stored
//   get:  GetOpen →   ← Chunk …   Ack per chunk →
// The sender of chunks has at most kBulkChunksInFlight of them without an Ack. Failed ends a
// request with its Error. Abort says that the client has given the request up.
//
// A connection that breaks loses messages without a word. A client that hears nothing of a request
// asks for it (Ask); a server that has no such request says so (Unknown), and the client begins it
// again under another number. PutOpen::put stays the same, so that a put whose Stored was lost is
// answered and not stored again.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/result.h"
#include "runtime/payload/bulk.h"
#include "runtime/wire/codec.h"

namespace tandem::payload {

// Numbers the requests of one client's connection; the server tells clients apart by routing id.
using BulkRequest = Id<struct BulkRequestTag>;

// Opens a put; the first chunk of the stream is the message's second part. The lists are parallel,
// one entry per payload; sizes are in bytes.
struct PutOpen {
  BulkRequest request;
  std::vector<std::uint64_t> sizes;
  std::vector<std::uint64_t> checksums;
  std::uint64_t put = 0;  // names the put among those of all clients; the same in each attempt
};
TANDEM_WIRE(PutOpen, request, sizes, checksums, put)

// Ends a put: all payloads are committed. The refs are in the order of the sizes.
struct Stored {
  BulkRequest request;
  std::vector<wire::PayloadRef> refs;
};
TANDEM_WIRE(Stored, request, refs)

// Opens a get; the refs' own sizes say how long the stream is.
struct GetOpen {
  BulkRequest request;
  std::vector<wire::PayloadRef> refs;
};
TANDEM_WIRE(GetOpen, request, refs)

// The next bytes of a stream, as the second part; at most kBulkChunkBytesMax.
struct Chunk {
  BulkRequest request;
  std::uint64_t offset = 0;  // the place of the chunk's first byte in the stream
};
TANDEM_WIRE(Chunk, request, offset)

// Tells how many more chunks of the request have been taken.
struct Ack {
  BulkRequest request;
  std::uint32_t chunks = 0;
};
TANDEM_WIRE(Ack, request, chunks)

// Server to client: the request has ended without effect.
struct Failed {
  BulkRequest request;
  Error error;
};
TANDEM_WIRE(Failed, request, error)

// Client to server: the room of a put, and the place of a transfer, may be freed.
struct Abort {
  BulkRequest request;
};
TANDEM_WIRE(Abort, request)

// Client to server: is the request under way?
struct Ask {
  BulkRequest request;
};
TANDEM_WIRE(Ask, request)

// Server to client: no such request is under way. One that has ended was answered before this.
struct Unknown {
  BulkRequest request;
};
TANDEM_WIRE(Unknown, request)

using BulkMessage = std::variant<PutOpen, Stored, GetOpen, Chunk, Ack, Failed, Abort, Ask, Unknown>;

// Bounds a message part: a list of kBulkPayloadsMax refs, or one chunk, fits.
inline constexpr std::uint64_t kBulkMessageBytesMax = 8 << 20;
// How often client and server look at deadlines, and try again to send messages that a full socket
// did not take.
inline constexpr Duration kBulkTick = std::chrono::milliseconds(20);
// A client asks for a request of which it has heard nothing for so long, and again after as long.
inline constexpr Duration kBulkAskEvery = std::chrono::seconds(1);
// The server knows the answers of as many puts as have so many payloads together.
inline constexpr std::size_t kBulkAnswersMax = 65'536;

// A place in a stream, which moves forward. A plain value: a caller that tries a send copies the
// cursor first, and puts the copy back where the socket took nothing.
class StreamCursor {
 public:
  // A run of bytes within one payload.
  struct Piece {
    std::size_t payload = 0;
    std::uint64_t offset = 0;  // in that payload
    std::uint64_t bytes = 0;
  };

  // Stands at the beginning of a stream of payloads of these sizes in bytes. Their sum must have
  // been checked (check_bulk_sizes), since it is not protected from overflow.
  explicit StreamCursor(std::vector<std::uint64_t> sizes);
  const std::vector<std::uint64_t>& sizes() const { return sizes_; }
  std::uint64_t position() const { return position_; }
  std::uint64_t total() const { return total_; }
  std::uint64_t left() const { return total_ - position_; }
  // How long the next chunk is: the whole limit, except for the last one.
  std::uint64_t next_chunk_bytes() const {
    return std::min<std::uint64_t>(left(), kBulkChunkBytesMax);
  }
  // The next `bytes` of the stream, piece by piece; moves behind them. CHECKed: at most left().
  std::vector<Piece> take(std::uint64_t bytes);

 private:
  std::vector<std::uint64_t> sizes_;
  std::size_t payload_ = 0;   // the payload that position_ is in …
  std::uint64_t offset_ = 0;  // … and how far into it
  std::uint64_t position_ = 0;
  std::uint64_t total_ = 0;
};

// kInvalid where a request of payloads of these sizes is over kBulkPayloadsMax or
// kBulkRequestBytesMax. Safe on any numbers of a peer: no sum overflows.
Result<void> check_bulk_sizes(const std::vector<std::uint64_t>& sizes);
std::vector<std::uint64_t> sizes_of(const std::vector<wire::PayloadRef>& refs);
std::string to_string(const wire::PayloadRef& ref);  // "vm/segment 3 at 4096 (17 bytes)"

}  // namespace tandem::payload
