#include "runtime/link/key_gate.h"

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <map>
#include <optional>
#include <set>
#include <vector>
#include <zmq.hpp>
#include <zmq_addon.hpp>

#include "runtime/base/check.h"
#include "runtime/base/clock.h"
#include "runtime/base/log.h"

namespace tandem::link {
namespace {

constexpr const char* kZapEndpoint = "inproc://zeromq.zap.01";
constexpr std::size_t kRawKeyBytes = 32;
constexpr Duration kSayEvery = std::chrono::seconds(1);

// The frames of a ZAP request, behind the two that a ROUTER socket sees first: the address of
// libzmq's own request socket, and an empty frame.
enum Frame { kPeer, kEmpty, kVersion, kRequest, kDomain, kAddress, kIdentity, kMechanism, kKey };
constexpr std::size_t kFrames = kKey + 1;

}  // namespace

struct KeyGate::State : std::enable_shared_from_this<KeyGate::State> {
  State(boost::asio::io_context& loop, zmq::context_t& context)
      : socket(context, zmq::socket_type::router), descriptor(loop, socket.get(zmq::sockopt::fd)) {
    socket.set(zmq::sockopt::linger, 0);
    socket.bind(kZapEndpoint);
  }

  // The descriptor is edge-triggered, as zmq_socket.cc explains: wait only once nothing is left to
  // read.
  void serve() {
    std::vector<zmq::message_t> frames;
    while (zmq::recv_multipart(socket, std::back_inserter(frames), zmq::recv_flags::dontwait)) {
      answer(frames);
      frames.clear();
    }
    descriptor.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                          [self = shared_from_this()](const boost::system::error_code& error) {
                            if (!error && !self->closed) self->serve();
                          });
  }

  // At an endpoint with keys libzmq asks for CURVE alone, so NULL comes from a Unix socket.
  bool admits(const std::vector<zmq::message_t>& frames) const {
    if (frames.size() == kKey && frames[kMechanism].to_string_view() == "NULL")
      return frames[kDomain].to_string_view() == kUnixSockets;
    if (frames.size() != kFrames || frames[kMechanism].to_string_view() != "CURVE") return false;
    const auto domain = admitted.find(frames[kDomain].to_string());
    return domain != admitted.end() && domain->second.contains(frames[kKey].to_string());
  }

  // Anyone who can connect can be refused: at most one line per kSayEvery.
  void say_refused(const std::string& from) {
    ++refused;
    const Time now = steady_now();
    if (said && now - *said < kSayEvery) return;
    said = now;
    log::warn("event=key_refused from={} refused={} reason=\"its key is not of this cluster\"",
              from, refused);
  }

  void answer(const std::vector<zmq::message_t>& frames) {
    // Too short to be answered; libzmq sends no such request.
    if (frames.size() <= kAddress) return;
    const bool good = admits(frames);
    if (!good) say_refused(frames[kAddress].to_string());
    // Address, empty frame, version, request id, status, its text, user id, metadata.
    const std::array<zmq::const_buffer, 8> reply{
        zmq::buffer(frames[kPeer].to_string_view()),
        zmq::str_buffer(""),
        zmq::str_buffer("1.0"),
        zmq::buffer(frames[kRequest].to_string_view()),
        good ? zmq::str_buffer("200") : zmq::str_buffer("400"),
        good ? zmq::str_buffer("OK") : zmq::str_buffer("unknown key"),
        zmq::str_buffer(""),
        zmq::str_buffer("")};
    zmq::send_multipart(socket, reply, zmq::send_flags::dontwait);
  }

  zmq::socket_t socket;
  boost::asio::posix::stream_descriptor descriptor;  // borrows libzmq's: released, never closed
  std::map<std::string, std::set<std::string>> admitted;  // keys by domain, as 32 raw bytes
  std::uint64_t refused = 0;
  std::optional<Time> said;
  bool closed = false;
};

KeyGate::KeyGate(boost::asio::io_context& loop, zmq::context_t& context)
    : state_(std::make_shared<State>(loop, context)) {
  state_->serve();
}

KeyGate::~KeyGate() {
  // A wait that is still pending holds the state and returns once more; it must not touch the
  // socket.
  state_->closed = true;
  state_->descriptor.release();
  state_->socket.close();
}

std::string KeyGate::make_domain(const std::vector<std::string>& client_keys) {
  std::string domain = "tandem-" + std::to_string(state_->admitted.size());
  std::set<std::string>& raw_keys = state_->admitted[domain];
  for (const std::string& key : client_keys) {
    std::array<std::uint8_t, kRawKeyBytes> raw;
    CHECK(zmq_z85_decode(raw.data(), key.c_str()) != nullptr);
    raw_keys.emplace(reinterpret_cast<const char*>(raw.data()), raw.size());
  }
  return domain;
}

}  // namespace tandem::link
