#include "tests/fuzz/raw_peer.h"

#include <cerrno>

#include "runtime/base/check.h"

namespace tandem::fuzz {
namespace {

constexpr int kHangMs = 8000;

// libFuzzer's timer interrupts a wait, which cppzmq reports by an exception.
template <class Call>
bool uninterrupted(const Call& call) {
  for (;;) {
    try {
      return call();
    } catch (const zmq::error_t& error) {
      if (error.num() != EINTR) throw;
    }
  }
}

zmq::context_t& context() {
  static zmq::context_t shared(1);
  return shared;
}

}  // namespace

RawPeer::RawPeer(const link::Endpoint& to, const std::string& routing_id,
                 const std::optional<link::CurveClient>& keys)
    : socket_(context(), zmq::socket_type::dealer) {
  socket_.set(zmq::sockopt::linger, 0);
  socket_.set(zmq::sockopt::rcvtimeo, kHangMs);
  socket_.set(zmq::sockopt::sndtimeo, kHangMs);
  socket_.set(zmq::sockopt::routing_id, routing_id);
  if (keys) {
    socket_.set(zmq::sockopt::curve_serverkey, keys->server_key);
    socket_.set(zmq::sockopt::curve_publickey, keys->own.public_key);
    socket_.set(zmq::sockopt::curve_secretkey, keys->own.secret_key);
  }
  socket_.connect(to.is_local() ? to_string(to) : "tcp://" + to_string(to));
}

void RawPeer::send(std::string_view head, std::string_view body) {
  const auto flags = body.empty() ? zmq::send_flags::none : zmq::send_flags::sndmore;
  CHECK(uninterrupted([&] { return socket_.send(zmq::buffer(head), flags).has_value(); }));
  if (body.empty()) return;
  CHECK(uninterrupted(
      [&] { return socket_.send(zmq::buffer(body), zmq::send_flags::none).has_value(); }));
}

std::optional<std::vector<std::string>> RawPeer::receive(zmq::recv_flags flags) {
  std::vector<std::string> parts;
  for (;;) {
    zmq::message_t part;
    if (!uninterrupted([&] { return socket_.recv(part, flags).has_value(); })) return std::nullopt;
    parts.push_back(part.to_string());
    if (!part.more()) return parts;
  }
}

std::vector<std::string> RawPeer::receive() {
  auto parts = receive(zmq::recv_flags::none);
  CHECK(parts.has_value());
  return *std::move(parts);
}

std::optional<std::vector<std::string>> RawPeer::receive_now() {
  return receive(zmq::recv_flags::dontwait);
}

}  // namespace tandem::fuzz
