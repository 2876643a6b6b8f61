// An event loop on a thread of its own reads from each end of a connection and writes to the other
// one, as far as the faults that the test has set allow.
#include "tests/runtime/weights/relay.h"

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <deque>
#include <optional>
#include <set>
#include <utility>

namespace tandem::weights {
namespace {

using Tcp = boost::asio::ip::tcp;
using boost::system::error_code;

// Small, so that a slow reader at one end is soon felt at the other.
constexpr int kSocketBytes = 64 << 10;

}  // namespace

struct Relay::State : std::enable_shared_from_this<State> {
  // One direction of a connection.
  struct Lane {
    Tcp::socket& from;
    Tcp::socket& to;
    bool to_dialler;
    std::array<char, 16 << 10> buffer{};
    std::size_t filled = 0;  // read while stalled, to be written later
  };
  struct Connection {
    explicit Connection(boost::asio::io_context& loop) : near(loop), far(loop) {}
    Tcp::socket near, far;
    Lane down{far, near, true};
    Lane up{near, far, false};
  };
  using Held = std::shared_ptr<Connection>;

  State(boost::asio::io_context& l, const link::Endpoint& server)
      : loop(l),
        acceptor(l, Tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0)),
        target(boost::asio::ip::make_address(server.host), server.port),
        at{.port = acceptor.local_endpoint().port()} {}

  void accept() {
    acceptor.async_accept([self = shared_from_this()](const error_code& error, Tcp::socket socket) {
      if (error) return;
      ++self->taken;
      if (!self->blocked) self->open(std::move(socket));
      self->accept();
    });
  }
  void open(Tcp::socket socket) {
    auto held = std::make_shared<Connection>(loop);
    held->near = std::move(socket);
    error_code failed;
    held->far.connect(target, failed);
    if (failed) return;
    for (Tcp::socket* end : {&held->near, &held->far}) {
      end->set_option(Tcp::socket::send_buffer_size(kSocketBytes), failed);
      end->set_option(Tcp::socket::receive_buffer_size(kSocketBytes), failed);
      end->set_option(Tcp::no_delay(true), failed);
    }
    connections.insert(held);
    open_now = connections.size();
    read(held, held->down);
    read(held, held->up);
  }
  void read(const Held& held, Lane& lane) {
    lane.from.async_read_some(
        boost::asio::buffer(lane.buffer),
        [self = shared_from_this(), held, &lane](const error_code& error, std::size_t bytes) {
          if (error) return self->close(held);
          lane.filled = bytes;
          if (!self->stalled) self->pass(held, lane);
        });
  }
  void pass(const Held& held, Lane& lane) {
    const std::size_t bytes = std::exchange(lane.filled, 0);
    const bool over = lane.to_dialler && account(lane, bytes);
    boost::asio::async_write(
        lane.to, boost::asio::buffer(lane.buffer.data(), bytes),
        [self = shared_from_this(), held, &lane](const error_code& error, std::size_t) {
          if (error) return self->close(held);
          self->read(held, lane);
        });
    if (over) cut();
  }
  // Whether the connections are to be cut now.
  bool account(Lane& lane, std::size_t more) {
    const std::uint64_t before = passed.fetch_add(more);
    if (flip_at && before + more > *flip_at) {
      const std::size_t place = *flip_at > before ? *flip_at - before : 0;
      lane.buffer[place] = static_cast<char>(lane.buffer[place] ^ 4);
      flip_at.reset();
      flipped = true;
    }
    if (stall_at && before + more >= *stall_at) {
      stall_at.reset();
      stalled = true;
    }
    if (!cut_at || before + more < *cut_at) return false;
    next_cut(before + more);
    return true;
  }
  void next_cut(std::uint64_t from) {
    cut_at.reset();
    if (cuts.empty()) return;
    cut_at = from + cuts.front();
    cuts.pop_front();
  }
  void close(const Held& held) {
    error_code ignored;
    held->near.close(ignored);
    held->far.close(ignored);
    connections.erase(held);
    open_now = connections.size();
  }
  void cut() {
    while (!connections.empty()) close(*connections.begin());
  }
  void heal() {
    blocked = stalled = false;
    for (const Held& held : std::set<Held>(connections)) {
      for (Lane* lane : {&held->down, &held->up}) {
        if (lane->filled > 0) pass(held, *lane);
      }
    }
  }

  boost::asio::io_context& loop;
  Tcp::acceptor acceptor;
  const Tcp::endpoint target;
  const link::Endpoint at;
  std::atomic<std::uint64_t> taken = 0;
  std::atomic<std::uint64_t> open_now = 0;
  std::atomic<std::uint64_t> passed = 0;  // to the diallers
  std::atomic<bool> flipped = false;
  // These are used only on the loop's thread.
  std::set<Held> connections;
  std::deque<std::uint64_t> cuts;  // after cut_at, each from the one before
  bool blocked = false;
  bool stalled = false;
  std::optional<std::uint64_t> cut_at, flip_at, stall_at;
};

Relay::Relay(const link::Endpoint& to) {
  io_.run([&] {
    state_ = std::make_shared<State>(io_.loop(), to);
    state_->accept();
  });
}

Relay::~Relay() {
  io_.run([&] {
    state_->acceptor.close();
    state_->cut();
  });
}

const link::Endpoint& Relay::at() const { return state_->at; }
std::uint64_t Relay::connections() const { return state_->taken; }
std::uint64_t Relay::open() const { return state_->open_now; }
std::uint64_t Relay::bytes() const { return state_->passed; }
bool Relay::flipped() const { return state_->flipped; }

void Relay::cut_after(const std::vector<std::uint64_t>& more) {
  io_.run([&] {
    state_->cuts.assign(more.begin(), more.end());
    state_->next_cut(state_->passed);
  });
}

void Relay::block() {
  io_.run([&] {
    state_->blocked = true;
    state_->cut();
  });
}

void Relay::stall_after(std::uint64_t more) {
  io_.run([&] { state_->stall_at = state_->passed + more; });
}

void Relay::heal() {
  io_.run([&] { state_->heal(); });
}

void Relay::flip_after(std::uint64_t more) {
  io_.run([&] {
    state_->flip_at = state_->passed + more;
    state_->flipped = false;
  });
}

}  // namespace tandem::weights
