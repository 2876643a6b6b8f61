// The descriptor of a ZeroMQ socket is edge-triggered: it says that something may have changed
// since the events were last read, and stays quiet about input that was there before. So pump()
// reads the events until nothing is left to do, and only then waits. A periodic pump by the owner's
// timer hides an edge that was missed nevertheless.
#include "runtime/net/zmq_socket.h"

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <utility>

#include "runtime/base/check.h"

namespace tandem::runtime {
namespace {

constexpr int kMessagesPerTurn = 256;  // then other work of the loop gets its turn

int milliseconds(Duration d) {
  return static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(d).count());
}

}  // namespace

struct ZmqSocket::State : std::enable_shared_from_this<State> {
  State(IoThread& thread, zmq::socket_type type)
      : io(thread),
        socket(thread.context(), type),
        descriptor(thread.loop(), socket.get(zmq::sockopt::fd)),
        routed(type == zmq::socket_type::router) {}

  bool receive_one();
  void pump();
  void wait();

  IoThread& io;
  zmq::socket_t socket;
  boost::asio::posix::stream_descriptor descriptor;  // borrows libzmq's: released, never closed
  const bool routed;
  OnMessage on_message;
  Flush flush;
  bool waiting = false;
  bool pumping = false;
  bool closed = false;
};

ZmqSocket::ZmqSocket(IoThread& io, zmq::socket_type type, const ZmqOptions& options) {
  CHECK(io.on_this_thread());
  state_ = std::make_shared<State>(io, type);
  auto& socket = state_->socket;
  socket.set(zmq::sockopt::linger, 0);
  socket.set(zmq::sockopt::sndhwm, options.queue_messages);
  socket.set(zmq::sockopt::rcvhwm, options.queue_messages);
  socket.set(zmq::sockopt::maxmsgsize, static_cast<std::int64_t>(options.message_bytes_max));
  socket.set(zmq::sockopt::reconnect_ivl, milliseconds(options.redial_min));  // libzmq adds jitter
  socket.set(zmq::sockopt::reconnect_ivl_max, milliseconds(options.redial_max));
  socket.set(zmq::sockopt::handshake_ivl, 3000);
  socket.set(zmq::sockopt::heartbeat_ivl, 1000);  // for half-open connections only: libzmq's own
  socket.set(zmq::sockopt::heartbeat_timeout, 3000);  // thread answers while ours hangs
  socket.set(zmq::sockopt::heartbeat_ttl, 3000);
  socket.set(zmq::sockopt::tcp_keepalive, 1);
  if (state_->routed) {
    socket.set(zmq::sockopt::router_mandatory, true);
    socket.set(zmq::sockopt::router_handover, true);  // a reconnect; ids name one life only
  } else {
    socket.set(zmq::sockopt::immediate, true);
  }
}

ZmqSocket::~ZmqSocket() { close(Duration::zero()); }

Result<Endpoint> ZmqSocket::bind(const Endpoint& at) {
  const std::string port = at.port == 0 ? "*" : std::to_string(at.port);
  if (zmq_bind(state_->socket.handle(), ("tcp://" + at.host + ":" + port).c_str()) != 0) {
    return listen_error(at, zmq_errno());
  }
  const std::string bound = state_->socket.get(zmq::sockopt::last_endpoint);
  return parse_endpoint(std::string_view(bound).substr(std::string_view("tcp://").size()));
}

void ZmqSocket::connect(const Endpoint& to, const std::string& routing_id) {
  if (!routing_id.empty()) state_->socket.set(zmq::sockopt::routing_id, routing_id);
  state_->socket.connect("tcp://" + to_string(to));
}

void ZmqSocket::start(OnMessage on_message, Flush flush) {
  state_->on_message = std::move(on_message);
  state_->flush = std::move(flush);
  state_->pump();
}

void ZmqSocket::pump() { state_->pump(); }
bool ZmqSocket::pumping() const { return state_->pumping; }

// Takes one message off and hands it on; one with a wrong number of parts is dropped.
bool ZmqSocket::State::receive_one() {
  zmq::message_t from;
  std::array<zmq::message_t, kPartsMax> parts;
  std::size_t count = 0;
  if (routed && zmq_msg_recv(from.handle(), socket.handle(), ZMQ_DONTWAIT) < 0) return false;
  bool more = true;
  while (more) {
    zmq::message_t excess;
    zmq::message_t& part = count < kPartsMax ? parts[count] : excess;
    if (zmq_msg_recv(part.handle(), socket.handle(), ZMQ_DONTWAIT) < 0) return false;
    ++count;
    more = part.more();
  }
  if (count <= kPartsMax) on_message(from.to_string_view(), {parts.data(), count});
  return true;
}

void ZmqSocket::State::pump() {
  if (closed || pumping) return;
  const auto self = shared_from_this();  // a callback may drop the socket
  pumping = true;
  int budget = kMessagesPerTurn;
  bool busy = true;
  while (busy && budget > 0) {
    busy = false;
    const int events = socket.get(zmq::sockopt::events);
    if (events & ZMQ_POLLIN) {
      while (budget > 0 && !closed && receive_one()) --budget;
      busy = true;
    }
    if (closed) return;
    if ((events & ZMQ_POLLOUT) && flush()) busy = true;
    if (closed) return;
  }
  pumping = false;
  if (busy) return io.post([self] { self->pump(); });
  wait();
}

void ZmqSocket::State::wait() {
  if (waiting) return;
  waiting = true;
  descriptor.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                        [self = shared_from_this()](const boost::system::error_code& error) {
                          self->waiting = false;
                          if (!error) self->pump();
                        });
}

Wrote ZmqSocket::write(std::string_view to, std::string_view head, std::string_view body) {
  if (state_->closed) return Wrote::kUnreachable;
  void* const socket = state_->socket.handle();
  if (state_->routed && zmq_send(socket, to.data(), to.size(), ZMQ_DONTWAIT | ZMQ_SNDMORE) < 0) {
    return zmq_errno() == EHOSTUNREACH ? Wrote::kUnreachable : Wrote::kBusy;
  }
  const int more = body.empty() ? 0 : ZMQ_SNDMORE;
  if (zmq_send(socket, head.data(), head.size(), ZMQ_DONTWAIT | more) < 0) return Wrote::kBusy;
  if (more) zmq_send(socket, body.data(), body.size(), ZMQ_DONTWAIT);
  return Wrote::kSent;
}

void ZmqSocket::close(Duration linger) {
  if (!state_ || state_->closed) return;
  CHECK(state_->io.on_this_thread());
  state_->closed = true;
  state_->descriptor.release();
  state_->socket.set(zmq::sockopt::linger, milliseconds(linger));
  state_->socket.close();
}

}  // namespace tandem::runtime
