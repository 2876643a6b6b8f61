// One ZeroMQ socket on an IoThread: a loop that joins libzmq's edge-triggered descriptor with Asio,
// sends that never block, and a close that never hangs. write() may be called on any thread; every
// other call is on the IoThread, and callbacks come there. A callback may close or destroy the
// socket.
//
// ZQ-1  The loop never waits for the descriptor while the socket has input, or the owner has output
//       that the socket would take: after every receive and every send it looks again, a ROUTER
//       without room for a peer also 2 ms later, and a write outside the loop wakes the loop for
//       events that the loop has not seen.
// ZQ-2  A Unix socket whose file was removed is bound again at the same path, soon after its folder
//       is there and private; connections that stand go on.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <zmq.hpp>

#include "runtime/base/clock.h"
#include "runtime/base/result.h"
#include "runtime/link/curve.h"
#include "runtime/link/io_thread.h"

namespace tandem::link {

// How an attempt to send ended. Only kSent took anything.
enum class Wrote {
  kSent,
  kBusy,         // no room now (or, for a DEALER, no connection)
  kUnreachable,  // ROUTER: no peer of that routing id is connected; or the socket is closed
};

struct ZmqOptions {
  std::uint64_t message_bytes_max = 0;  // libzmq drops the connection of a peer that sends more
  int queue_messages = 1000;            // libzmq's high-water marks; flow control is the owner's
  Duration redial_min = std::chrono::milliseconds(50);  // doubles up to redial_max
  Duration redial_max = std::chrono::seconds(2);        // a Unix socket: 250 ms
};

class ZmqSocket {
 public:
  // `from`: the routing id, empty for a DEALER. `parts`: at least one, at most kPartsMax; messages
  // of more parts are dropped. Both are valid during the call alone.
  using OnMessage = std::function<void(std::string_view from, std::span<zmq::message_t> parts)>;
  // Called when the socket may have room: writes what it can, and returns whether it wrote
  // anything. It is called again until it returns false.
  using Flush = std::function<bool()>;
  static constexpr std::size_t kPartsMax = 2;

  ZmqSocket(IoThread& io, zmq::socket_type type, const ZmqOptions& options);
  ~ZmqSocket();
  // May be called several times, for several places. Errors: the place is taken; TCP without keys.
  Result<Endpoint> bind(const Binding& binding);
  // An empty routing id: the other end makes one up for each connection.
  void connect(const Dial& dial, const std::string& routing_id);

  // Begins to receive and send. Nothing is received before.
  void start(OnMessage on_message, Flush flush);
  void pump();           // call after anything that gives flush() something to write
  bool pumping() const;  // within a callback: flush() is called before the loop waits
  // Writes the whole message or nothing of it, on any thread. `to`: the routing id of the receiver,
  // ignored by a DEALER. An empty body makes no second part.
  Wrote write(std::string_view to, std::string_view head, std::string_view body = {});
  // `linger`: how long libzmq may go on sending. Later calls do nothing; the destructor closes with
  // no linger.
  void close(Duration linger);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tandem::link
