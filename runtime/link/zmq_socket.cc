// The descriptor of a ZeroMQ socket is edge-triggered: it says that something may have changed
// since the events were last read, and stays silent about input that was there before. So pump()
// reads the events until nothing is left to do, and only then waits (ZQ-1). The owner's timer calls
// pump() as well, which makes up for an edge that was missed nevertheless.
//
// libzmq lets a socket pass from thread to thread behind a full fence, which `mutex` is. A write by
// another thread may take the news of input from the descriptor, for libzmq takes in news at every
// call. So a writer reads the events too, and posts a pump for those that the loop has not seen.
#include "runtime/link/zmq_socket.h"

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <filesystem>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/base/check.h"
#include "runtime/base/log.h"
#include "runtime/link/key_gate.h"
#include "runtime/link/socket_folder.h"
#include "runtime/link/ticker.h"

namespace tandem::link {
namespace {

constexpr int kMessagesPerTurn = 256;  // then other work of the loop gets its turn
constexpr Duration kFilesCheckedEvery = std::chrono::milliseconds(500);
// Each time costs a descriptor, which the former place keeps.
constexpr int kBoundAgainMax = 100;
constexpr int kLocalRedialMaxMs = 250;
// A ROUTER that had no room for output tries again so much later at the latest.
constexpr Duration kLookAgain = std::chrono::milliseconds(2);

int milliseconds(Duration d) {
  return static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(d).count());
}

// libzmq gives up with EINTR when a signal handler ran on this thread.
template <class Call>
int uninterrupted(Call call) {
  int result = call();
  while (result < 0 && zmq_errno() == EINTR) result = call();
  return result;
}

}  // namespace

struct ZmqSocket::State : std::enable_shared_from_this<State> {
  State(IoThread& thread, zmq::socket_type type)
      : io(thread),
        socket(thread.context(), type),
        descriptor(thread.loop(), socket.get(zmq::sockopt::fd)),
        again(thread.loop()),
        routed(type == zmq::socket_type::router) {}

  int events();  // mutex held
  int see_events();
  bool receive(zmq::message_t& part);  // mutex held
  bool receive_one();
  Wrote write(std::string_view to, std::string_view head, std::string_view body);  // mutex held
  void pump();
  void wait();
  void look_again();
  bool bind_file(const Endpoint& at);  // a Unix socket; mutex held
  void check_files();

  IoThread& io;
  // Never held during a callback.
  std::mutex mutex;
  zmq::socket_t socket;  // guarded by mutex, as are:
  int seen = 0;          // the events that the loop knows of, or that a pump on its way will see
  bool blocked = false;  // a write in the loop has met no room since flush() was called last
  bool closed = false;   // changed on the IoThread under the mutex, read there without
  // All other fields are used on the IoThread alone.
  boost::asio::posix::stream_descriptor descriptor;  // borrows libzmq's: released, never closed
  boost::asio::steady_timer again;
  const bool routed;
  std::vector<Endpoint> files;  // the Unix sockets at which it listens
  std::optional<Ticker> files_check;
  int bound_again = 0;
  bool keyed = false;  // a place with keys has been bound
  OnMessage on_message;
  Flush flush;
  bool waiting = false;
  bool pumping = false;
  bool tried = false;  // to write, since the loop looked at the events last
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
  socket.set(zmq::sockopt::connect_timeout, 1000);  // TCP itself tries less and less often
  // These heartbeats find half-open connections only: libzmq's own thread answers them, even while
  // all threads of this program hang.
  socket.set(zmq::sockopt::heartbeat_ivl, 1000);
  socket.set(zmq::sockopt::heartbeat_timeout, 3000);
  socket.set(zmq::sockopt::heartbeat_ttl, 3000);
  socket.set(zmq::sockopt::tcp_keepalive, 1);
  if (state_->routed) {
    // Without it libzmq silently drops a message to a peer that is not connected.
    socket.set(zmq::sockopt::router_mandatory, true);
    // A client that reconnects takes over its own routing id; a nonce in the id keeps all others
    // from it.
    socket.set(zmq::sockopt::router_handover, true);
  } else {
    // Messages are queued for a connection that stands, never for one that is still being dialled.
    socket.set(zmq::sockopt::immediate, true);
  }
}

ZmqSocket::~ZmqSocket() { close(Duration::zero()); }

// An option counts for the binds that follow it, so one socket may listen to a Unix socket without
// keys and to TCP with them.
Result<Endpoint> ZmqSocket::bind(const Binding& binding) {
  const Endpoint& at = binding.at;
  const std::lock_guard lock(state_->mutex);
  zmq::socket_t& socket = state_->socket;
  if (at.is_local()) {
    if (!state_->bind_file(at)) return listen_error(at, zmq_errno());
    state_->files.push_back(at);
    if (!state_->files_check)
      state_->files_check.emplace(state_->io, kFilesCheckedEvery,
                                  [state = state_.get()](Time) { state->check_files(); });
    return at;
  }
  if (!binding.keys) {
    return Error{ErrorCode::kUnauthorised, "a TCP socket without keys is open to anyone",
                 to_string(at), "give it the keys of the cluster, or use a Unix socket"};
  }
  state_->keyed = true;
  socket.set(zmq::sockopt::zap_domain, state_->io.key_gate().make_domain(binding.keys->clients));
  socket.set(zmq::sockopt::curve_server, true);
  socket.set(zmq::sockopt::curve_secretkey, binding.keys->secret_key);
  socket.set(zmq::sockopt::ipv6, is_ipv6(at.host));
  return listen_within(binding.ports, at, [&socket](const Endpoint& place) -> Result<Endpoint> {
    std::string address = "tcp://" + to_string(place);
    if (place.port == 0) address.back() = '*';  // any
    if (zmq_bind(socket.handle(), address.c_str()) != 0) return listen_error(place, zmq_errno());
    const std::string bound = socket.get(zmq::sockopt::last_endpoint);
    return parse_endpoint(std::string_view(bound).substr(std::string_view("tcp://").size()));
  });
}

// A place that was bound before, with keys, has left its options. A domain, once set, can be
// exchanged and not taken away; the gate would be asked for a key that nobody has.
bool ZmqSocket::State::bind_file(const Endpoint& at) {
  socket.set(zmq::sockopt::curve_server, false);
  if (keyed) socket.set(zmq::sockopt::zap_domain, KeyGate::kUnixSockets);
  return zmq_bind(socket.handle(), to_string(at).c_str()) == 0;
}

// zmq_unbind would end the connections that came by the former file; a second zmq_bind leaves them.
// Nothing is bound in a folder that others can enter, since a Unix socket needs no keys.
void ZmqSocket::State::check_files() {
  std::error_code ignored;
  const int before = bound_again;
  for (const Endpoint& at : files) {
    const std::filesystem::path path = at.path;
    if (std::filesystem::exists(path, ignored) || bound_again == kBoundAgainMax ||
        !is_private_directory(path.parent_path()))
      continue;
    ++bound_again;
    const std::lock_guard lock(mutex);
    const bool bound = bind_file(at);
    log::warn("event=socket_bound_again path={} error=\"{}\"", at.path,
              bound ? "" : zmq_strerror(zmq_errno()));
  }
  if (bound_again != before && flush) pump();  // binding takes in news
}

void ZmqSocket::connect(const Dial& dial, const std::string& routing_id) {
  const std::lock_guard lock(state_->mutex);
  zmq::socket_t& socket = state_->socket;
  if (!routing_id.empty()) socket.set(zmq::sockopt::routing_id, routing_id);
  if (dial.keys) {
    socket.set(zmq::sockopt::curve_serverkey, dial.keys->server_key);
    socket.set(zmq::sockopt::curve_publickey, dial.keys->own.public_key);
    socket.set(zmq::sockopt::curve_secretkey, dial.keys->own.secret_key);
  }
  // To try a Unix socket costs next to nothing, and nobody else is disturbed.
  if (dial.to.is_local())
    socket.set(zmq::sockopt::reconnect_ivl_max,
               std::min(kLocalRedialMaxMs, socket.get(zmq::sockopt::reconnect_ivl_max)));
  socket.set(zmq::sockopt::ipv6, is_ipv6(dial.to.host));
  const std::string to = dial.to.is_local() ? to_string(dial.to) : "tcp://" + to_string(dial.to);
  // The address may come from another process. One that libzmq refuses is logged, and never
  // connects.
  if (zmq_connect(socket.handle(), to.c_str()) != 0)
    log::error("event=cannot_dial to=\"{}\" error=\"{}\"", to, zmq_strerror(zmq_errno()));
}

void ZmqSocket::start(OnMessage on_message, Flush flush) {
  state_->on_message = std::move(on_message);
  state_->flush = std::move(flush);
  state_->pump();
}

void ZmqSocket::pump() { state_->pump(); }
bool ZmqSocket::pumping() const { return state_->pumping; }

int ZmqSocket::State::events() {
  int events = 0;
  std::size_t bytes = sizeof(events);
  CHECK(uninterrupted(
            [&] { return zmq_getsockopt(socket.handle(), ZMQ_EVENTS, &events, &bytes); }) == 0);
  return events;
}

// The loop's look at the events, after which it acts on all of them.
int ZmqSocket::State::see_events() {
  const std::lock_guard lock(mutex);
  return seen = events();
}

bool ZmqSocket::State::receive(zmq::message_t& part) {
  return uninterrupted(
             [&] { return zmq_msg_recv(part.handle(), socket.handle(), ZMQ_DONTWAIT); }) >= 0;
}

// Takes one message off and passes it to its owner; one with a wrong number of parts is dropped.
// False: libzmq has taken in all news, and there is no input.
bool ZmqSocket::State::receive_one() {
  zmq::message_t from;
  std::array<zmq::message_t, kPartsMax> parts;
  std::size_t count = 0;
  std::unique_lock lock(mutex);
  if (routed && !receive(from)) {
    seen &= ~ZMQ_POLLIN;
    return false;
  }
  bool more = true;
  while (more) {
    zmq::message_t excess;
    zmq::message_t& part = count < kPartsMax ? parts[count] : excess;
    if (!receive(part)) {
      seen &= ~ZMQ_POLLIN;
      return false;
    }
    ++count;
    more = part.more();
  }
  lock.unlock();
  if (count <= kPartsMax) on_message(from.to_string_view(), {parts.data(), count});
  return true;
}

void ZmqSocket::State::pump() {
  if (closed || pumping) return;
  const auto self = shared_from_this();  // a callback may drop the socket
  pumping = true;
  int budget = kMessagesPerTurn;
  // `budget` bounds the messages of one turn, because other sockets and timers share this loop.
  bool busy = true;
  while (busy && budget > 0) {
    busy = false;
    tried = false;
    const int ready = see_events();
    if (ready & ZMQ_POLLIN) {
      while (budget > 0 && !closed && receive_one()) --budget;
      // The last look for a message may have taken the news that there is room for output.
      busy = budget == 0 || !(ready & ZMQ_POLLOUT);
      tried = false;
    }
    if (closed) return;
    if (ready & ZMQ_POLLOUT) {
      {
        const std::lock_guard lock(mutex);
        blocked = false;
      }
      if (flush()) busy = true;
    }
    if (closed) return;
    // A write that failed may have taken the news of input, and this look that of room.
    const int of_use = ZMQ_POLLIN | (blocked && !routed ? ZMQ_POLLOUT : 0);
    if (!busy && tried) busy = see_events() & of_use;
  }
  pumping = false;
  if (busy) return io.post([self] { self->pump(); });  // the turn ended, the work did not
  if (blocked && routed) look_again();
  wait();
}

// The look that ends a turn takes in the news of room as well, and a ROUTER does not show for which
// peer.
void ZmqSocket::State::look_again() {
  again.expires_after(kLookAgain);
  again.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (!error) self->pump();
  });
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
  State& state = *state_;
  const std::lock_guard lock(state.mutex);
  if (state.closed) return Wrote::kUnreachable;
  const Wrote result = state.write(to, head, body);
  if (result == Wrote::kBusy) state.seen &= ~ZMQ_POLLOUT;
  // Within a callback the loop reads the events itself before it waits.
  if (state.io.on_this_thread() && state.pumping) {
    state.tried = true;
    if (result == Wrote::kBusy) state.blocked = true;
    return result;
  }
  const int ready = state.events();
  // A ROUTER always says that there is room, for some peer: the news of room for another one may
  // just have been taken.
  if ((ready & ~state.seen) || state.blocked) {
    state.seen |= ready;
    state.io.post([pumped = state_] { pumped->pump(); });
  }
  return result;
}

Wrote ZmqSocket::State::write(std::string_view to, std::string_view head, std::string_view body) {
  const auto send = [this](std::string_view bytes, bool more) {
    const int flags = ZMQ_DONTWAIT | (more ? ZMQ_SNDMORE : 0);
    return uninterrupted(
        [&] { return zmq_send(socket.handle(), bytes.data(), bytes.size(), flags); });
  };
  // libzmq looks for room at the first part alone; once it took that, it takes the rest.
  if (routed && send(to, true) < 0) {
    return zmq_errno() == EHOSTUNREACH ? Wrote::kUnreachable : Wrote::kBusy;
  }
  if (send(head, !body.empty()) < 0) return Wrote::kBusy;
  if (!body.empty()) send(body, false);
  return Wrote::kSent;
}

void ZmqSocket::close(Duration linger) {
  if (!state_ || state_->closed) return;
  CHECK(state_->io.on_this_thread());
  const std::lock_guard lock(state_->mutex);
  state_->closed = true;
  if (state_->files_check) state_->files_check->stop();
  state_->again.cancel();
  state_->descriptor.release();
  state_->socket.set(zmq::sockopt::linger, milliseconds(linger));
  state_->socket.close();
}

}  // namespace tandem::link
