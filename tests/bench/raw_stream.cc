#include "tests/bench/raw_stream.h"

#include <string>
#include <vector>

#include "runtime/base/check.h"
#include "runtime/link/curve.h"

namespace tandem::bench {
namespace {

constexpr int kMessagesQueued = 8;

zmq::socket_t make_stream_socket(zmq::context_t& context) {
  zmq::socket_t socket(context, zmq::socket_type::dealer);
  socket.set(zmq::sockopt::sndhwm, kMessagesQueued);
  socket.set(zmq::sockopt::rcvhwm, kMessagesQueued);
  socket.set(zmq::sockopt::rcvtimeo, static_cast<int>(kPatience / std::chrono::milliseconds(1)));
  socket.set(zmq::sockopt::linger, 0);
  return socket;
}

}  // namespace

RawStream::RawStream(Encryption encryption) : socket_(make_stream_socket(context_)) {
  std::vector<std::string> keys;
  if (encryption == Encryption::kCurve) {
    const link::CurveKeys server = link::make_curve_keys();
    const link::CurveKeys client = link::make_curve_keys();
    socket_.set(zmq::sockopt::curve_server, true);
    socket_.set(zmq::sockopt::curve_secretkey, server.secret_key);
    keys = {server.public_key, client.public_key, client.secret_key};
  }
  socket_.bind("tcp://127.0.0.1:*");
  keys.insert(keys.begin(), socket_.get(zmq::sockopt::last_endpoint));
  sender_.spawn(kRawSender, 1, keys);
  zmq::message_t greeting;
  CHECK(socket_.recv(greeting).has_value());
}

void RawStream::fetch(std::uint64_t bytes) {
  const std::uint64_t messages = bytes / kStreamMessageBytes;
  socket_.send(zmq::buffer(std::to_string(messages)), zmq::send_flags::none);
  zmq::message_t message;
  for (std::uint64_t i = 0; i < messages; ++i) {
    CHECK(socket_.recv(message).has_value());
    CHECK(message.size() == kStreamMessageBytes);
  }
}

// PARENT NAME ENDPOINT [SERVER_KEY PUBLIC_KEY SECRET_KEY]
int run_raw_sender(std::span<const char* const> words) {
  die_with_parent(words[0]);
  std::vector<char> content(kStreamMessageBytes, 'w');
  zmq::context_t context;
  zmq::socket_t socket = make_stream_socket(context);
  socket.set(zmq::sockopt::rcvtimeo, -1);
  if (words.size() > 3) {
    socket.set(zmq::sockopt::curve_serverkey, words[3]);
    socket.set(zmq::sockopt::curve_publickey, words[4]);
    socket.set(zmq::sockopt::curve_secretkey, words[5]);
  }
  socket.connect(words[2]);
  socket.send(zmq::str_buffer("here"), zmq::send_flags::none);
  for (;;) {  // until the parent ends it
    zmq::message_t request;
    CHECK(socket.recv(request).has_value());
    for (std::uint64_t left = std::stoull(request.to_string()); left > 0; --left) {
      zmq::message_t message(content.data(), content.size(), [](void*, void*) {});
      CHECK(socket.send(message, zmq::send_flags::none).has_value());
    }
  }
}

}  // namespace tandem::bench
