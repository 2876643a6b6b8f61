// A session per reader, on the thread of the listener. A session writes pieces of
// kPieceBytes and sums each of them up just before it is sent, while it is in the cache. stop()
// runs on the loop's thread, between two pieces, and cuts all sessions off.
#include "runtime/weights/tensor_feed.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <string_view>
#include <utility>

#include "runtime/base/clock.h"
#include "runtime/base/secret.h"
#include "runtime/weights/loop_listener.h"

namespace tandem::weights {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::string_view kFeedMagic = "TANDEMW1";
constexpr std::size_t kTokenChars = 64;
constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
constexpr Duration kHelloMax = std::chrono::seconds(10);
constexpr std::size_t kSessionsMax = 64;                    // one more is cut off
constexpr Duration kSilenceMax = std::chrono::seconds(60);  // in which a reader takes a piece

using FeedTensors = std::vector<std::span<const std::byte>>;

template <class T>
std::string little_endian(T value) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof(T); ++i)
    bytes.push_back(static_cast<char>((value >> (8 * i)) & 0xff));
  return bytes;
}

class FeedSession : public std::enable_shared_from_this<FeedSession> {
 public:
  FeedSession(tcp::socket socket, const std::string& token, const FeedTensors& tensors)
      : stream_(std::move(socket)), hello_(std::string(kFeedMagic) + token), tensors_(&tensors) {}

  void start() {
    stream_.expires_after(kHelloMax);
    asio::async_read(stream_, asio::buffer(heard_),
                     [self = shared_from_this()](error_code error, std::size_t) {
                       if (!error && self->tensors_) self->greet();
                     });
  }
  void cut() {
    tensors_ = nullptr;
    stream_.close();
  }

 private:
  void greet() {
    // The rank is the reader's own business, and for whoever watches the wire.
    if (!same_secret({heard_.data(), hello_.size()}, hello_) || tensors_->empty()) return cut();
    std::uint64_t bytes = 0;
    for (const auto& tensor : *tensors_) bytes += tensor.size();
    words_ = std::string(kFeedMagic) + little_endian(bytes);
    send_words([](FeedSession& self) { self.send_piece(); });
  }
  template <class Then>
  void send_words(Then then) {
    stream_.expires_after(kSilenceMax);
    asio::async_write(stream_, asio::buffer(words_),
                      [self = shared_from_this(), then](error_code error, std::size_t) {
                        if (!error && self->tensors_) then(*self);
                      });
  }
  void send_piece() {
    while (at_ < tensors_->size() && done_ == (*tensors_)[at_].size()) {
      ++at_;
      done_ = 0;
    }
    if (at_ == tensors_->size()) {
      words_ = little_endian(static_cast<std::uint32_t>(crc_));
      return send_words([](FeedSession& self) { self.cut(); });
    }
    const auto rest = (*tensors_)[at_].subspan(done_);
    const auto piece = rest.first(std::min(rest.size(), kPieceBytes));
    crc_ = crc32_z(crc_, reinterpret_cast<const Bytef*>(piece.data()), piece.size());
    done_ += piece.size();
    stream_.expires_after(kSilenceMax);
    asio::async_write(stream_, asio::buffer(piece.data(), piece.size()),
                      [self = shared_from_this()](error_code error, std::size_t) {
                        if (!error && self->tensors_) self->send_piece();
                      });
  }

  beast::tcp_stream stream_;
  const std::string hello_;
  std::array<char, kFeedMagic.size() + kTokenChars + sizeof(std::uint32_t)> heard_{};
  const FeedTensors* tensors_;  // null: the session is cut off
  std::string words_;
  std::size_t at_ = 0, done_ = 0;  // the tensor that is sent, and how much of it was
  uLong crc_ = crc32_z(0, nullptr, 0);
};

}  // namespace

struct TensorFeed::State {
  std::string token = random_secret();
  FeedTensors tensors;
  std::vector<std::weak_ptr<FeedSession>> sessions;
  std::unique_ptr<LoopListener> listener;  // last: its thread uses the others

  void take(tcp::socket socket) {
    std::erase_if(sessions, [](const auto& session) { return session.expired(); });
    if (sessions.size() >= kSessionsMax) return;
    auto session = std::make_shared<FeedSession>(std::move(socket), token, tensors);
    sessions.push_back(session);
    session->start();
  }
  void replace(FeedTensors with) {
    listener->perform([&] {
      for (const auto& session : std::exchange(sessions, {}))
        if (const auto alive = session.lock()) alive->cut();
      tensors = std::move(with);
    });
  }
};

Result<std::unique_ptr<TensorFeed>> TensorFeed::listen(const std::string& host,
                                                       const link::PortRange& ports) {
  auto state = std::make_unique<State>();
  auto listener = LoopListener::listen(
      host, ports, [of = state.get()](tcp::socket socket) { of->take(std::move(socket)); });
  if (!listener) return listener.error();
  state->listener = *std::move(listener);
  return std::unique_ptr<TensorFeed>(new TensorFeed(std::move(state)));
}

TensorFeed::TensorFeed(std::unique_ptr<State> state) : state_(std::move(state)) {}

TensorFeed::~TensorFeed() = default;

const link::Endpoint& TensorFeed::endpoint() const { return state_->listener->endpoint(); }
const std::string& TensorFeed::token() const { return state_->token; }
void TensorFeed::serve(FeedTensors tensors) { state_->replace(std::move(tensors)); }
void TensorFeed::stop() { state_->replace({}); }

}  // namespace tandem::weights
