// The bulk socket carries payloads apart from messages: put() stores bytes at the server and
// returns a PayloadRef, get() fetches the bytes of a PayloadRef. A request carries any number of
// payloads as one stream of chunks, so thousands of small payloads cost one message and a large one
// never fills a queue: at most kBulkChunksInFlight chunks of a request travel unacknowledged.
//
// Checksums: the server verifies a put before it commits it, the client verifies every payload that
// it got. A request whose messages are lost with a connection begins again within its deadline. Not
// responsible for when a payload is deleted (the owner of the store decides, see segment_store.h).
//
// Threading: any thread; callbacks come on the client's IoThread and must not block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/result.h"
#include "runtime/link/curve.h"
#include "runtime/link/io_thread.h"
#include "runtime/payload/payload_io.h"
#include "runtime/payload/segment_store.h"

namespace tandem::payload {

inline constexpr std::size_t kBulkChunkBytesMax = 1 << 20;
inline constexpr std::uint32_t kBulkChunksInFlight = 4;
inline constexpr std::size_t kBulkPayloadsMax = 16'384;            // in one request
inline constexpr std::uint64_t kBulkRequestBytesMax = 1ull << 30;  // in one request
inline constexpr std::size_t kBulkTransfersMax = 1'024;            // open at a server

// Counts since the server's start. A malformed message is one that is not of this protocol; a
// failed request is one that was answered with an Error.
struct BulkCounters {
  std::uint64_t payloads_put = 0, payloads_got = 0, bytes_put = 0, bytes_got = 0;
  std::uint64_t requests_failed = 0, messages_malformed = 0;
};

// Serves one SegmentStore. Everything happens on the server's own IoThread, so a long request
// delays other requests and no heartbeat.
class BulkServer {
 public:
  // Listens on all of `at` (port 0: any) with an IoThread of its own. `node` is the node's name in
  // the refs that it makes. The store must outlive the server. Errors: a place is taken; TCP
  // without keys.
  static Result<std::unique_ptr<BulkServer>> listen(const std::vector<link::Binding>& at,
                                                    std::string node, SegmentStore& store);
  ~BulkServer();
  const std::vector<link::Endpoint>& endpoints() const;  // in the order of `at`
  BulkCounters counters() const;

 private:
  struct State;
  explicit BulkServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

class BulkClient {
 public:
  BulkClient(link::IoThread& io, link::Dial server);
  // `io` must outlive the client.
  ~BulkClient();  // requests under way end with an Error

  // A put's refs come in the order of its payloads, a get's bytes in the order of its refs.
  // `timeout` runs from the call, the wait for a turn included. Errors: kTimedOut, kUnreachable,
  // kNotFound (no such segment), kFailed (checksum, no room at the server, too many requests wait),
  // kInvalid (over a limit; a put of an empty payload).
  void put_many(std::vector<std::string> payloads, Duration timeout, WriteDone done);
  void get_many(std::vector<wire::PayloadRef> refs, Duration timeout, ReadDone done);

  // The server has started anew, and knows of no request: those under way begin again, with the
  // deadlines that they have.
  void send_anew();

  // Block until the answer or the deadline. CHECKed: not on the IoThread, which brings the answer.
  Result<std::vector<wire::PayloadRef>> put_many(std::vector<std::string> payloads,
                                                 Duration timeout);
  Result<std::vector<std::string>> get_many(std::vector<wire::PayloadRef> refs, Duration timeout);
  Result<wire::PayloadRef> put(std::string payload, Duration timeout);
  Result<std::string> get(wire::PayloadRef ref, Duration timeout);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tandem::payload
