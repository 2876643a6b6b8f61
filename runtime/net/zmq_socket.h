// One ZeroMQ socket on an IoThread: the loop that joins libzmq's edge-triggered descriptor with
// Asio, sends that never block, a close that never hangs. Every call on the IoThread.
//
// ZQ-1  The loop never waits for the descriptor while the socket has input, or the owner has output
//       that the socket would take: after every receive and every send the events are read again.
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
#include "runtime/net/curve.h"
#include "runtime/net/io_thread.h"

namespace tandem::runtime {

enum class Wrote {
  kSent,
  kBusy,         // no room now (or, for a DEALER, no connection)
  kUnreachable,  // ROUTER: nobody of that routing id is connected
};

struct ZmqOptions {
  std::uint64_t message_bytes_max = 0;
  int queue_messages = 1000;  // libzmq's high-water marks: a fuse, credits are the flow control
  Duration redial_min = std::chrono::milliseconds(50);
  Duration redial_max = std::chrono::seconds(2);
};

class ZmqSocket {
 public:
  // `from`: the routing id, empty for a DEALER. `parts`: at least one, at most kPartsMax.
  using OnMessage = std::function<void(std::string_view from, std::span<zmq::message_t> parts)>;
  // Writes what it can; whether it wrote anything.
  using Flush = std::function<bool()>;
  static constexpr std::size_t kPartsMax = 2;

  ZmqSocket(IoThread& io, zmq::socket_type type, const ZmqOptions& options);
  ~ZmqSocket();
  // Several times, for several places. Errors: the place is taken; TCP without keys.
  Result<Endpoint> bind(const Binding& binding);
  // An empty routing id: the other end makes one up for each connection.
  void connect(const Dial& dial, const std::string& routing_id);

  void start(OnMessage on_message, Flush flush);
  void pump();  // call after anything that flush() may want to write
  bool pumping() const;
  // All of the message or nothing of it.
  Wrote write(std::string_view to, std::string_view head, std::string_view body = {});
  void close(Duration linger);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tandem::runtime
