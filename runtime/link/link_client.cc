// The client's end of a link. libzmq dials, with backoff and jitter; introducing this process on
// each connection, and noticing that the server is gone, is done here.
//
// A client is in one of four states: about to introduce itself (no `server`, no `introduced_at`),
// introduced and waiting for the answer, up (`server` is set), or given up (refused or fenced, for
// good). A Welcome leads up; a good-bye, silence, a lost connection, a newer epoch or an Unknown
// lead back to the first state with the next `attempt`. A server by TCP that is silent stays up for
// its grace, while new connections are tried under the same session (LK-5). The number of the
// attempt is part of the session's key, so a late Welcome and late frames of an earlier session are
// told from those of this one (SE-3).
//
// LK-1: `server` is exchanged under the mutex before on_down, and set before on_up, so that send()
// in a callback sees the state that the callback reports.
#include <unistd.h>

#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/log.h"
#include "runtime/base/secret.h"
#include "runtime/link/link.h"
#include "runtime/link/link_traffic.h"
#include "runtime/wire/codec.h"

namespace tandem::link {
namespace {

// An introduction without an answer is repeated after this time; either may have been lost.
constexpr Duration kIntroduceAgainAfter = std::chrono::milliseconds(250);
constexpr std::size_t kNonceBytes = 16;  // part of a routing id, which has at most 255 bytes

}  // namespace

// The routing id stays the same for all connections, so that the server knows the client again.
struct LinkClient::State : std::enable_shared_from_this<LinkClient::State> {
  State(IoThread& io, Dial address, Hello hello, LinkOptions options, LinkCallbacks callbacks)
      : dial(std::move(address)),
        self(std::move(hello)),
        route(to_string(ActorId{self.name, self.incarnation}) + "~" +
              random_secret().substr(0, kNonceBytes)),
        traffic(io, std::move(options), std::move(callbacks)) {
    if (self.pid == 0) self.pid = getpid();
    self.remote = traffic.remote_server = !dial.to.is_local();
  }

  void start();
  void connect();
  void connect_anew();
  bool flush(Time now);
  void on_message(std::string_view packet);
  void take_welcome(std::string_view body, Time now);
  void take_refusal(std::string_view body);
  void take_fence(std::string_view packet);
  void take_unknown(std::string_view body);
  void take_frames(std::string_view packet, Time now);
  void down(Down::Reason reason);
  void give_up(Down down);
  void introduce_anew();
  void tick(Time now);
  void begin_close(Duration flush_within);
  void finish_close(bool flushed);
  bool flushed();

  const Dial dial;
  Hello self;
  const std::string route;
  LinkTraffic traffic;
  std::shared_ptr<LinkPeer> server;  // set while up; changed on the IoThread under traffic.mutex
  // These are used only on the IoThread.
  std::optional<Ticker> ticker;
  std::uint64_t attempt = 1;          // the number of the newest introduction
  std::optional<Time> introduced_at;  // an answer is awaited since then
  Epoch newest;                       // the highest epoch among the servers that welcomed it
  bool given_up = false;
  std::optional<Time> close_at;
  Time connected_at{};  // the newest attempt to connect
};

void LinkClient::State::start() {
  connect();
  ticker.emplace(traffic.io, kLinkTick, [this](Time now) { tick(now); });
}

void LinkClient::State::connect() {
  connected_at = steady_now();
  auto socket =
      std::make_unique<ZmqSocket>(traffic.io, zmq::socket_type::dealer, traffic.socket_options());
  socket->connect(dial, route);
  {
    const std::lock_guard order(traffic.writing);
    traffic.socket.swap(socket);
  }
  traffic.socket->start(
      [this](std::string_view, std::span<zmq::message_t> parts) {
        if (parts.size() == 1 && !parts[0].empty()) on_message(parts[0].to_string_view());
      },
      [this] { return flush(steady_now()); });
}

void LinkClient::State::connect_anew() {
  traffic.socket->close(Duration::zero());
  connect();
}

// Called whenever the socket has room, and it has room only while it is connected; so a new
// connection begins with an introduction.
bool LinkClient::State::flush(Time now) {
  if (given_up) return false;
  if (server) return traffic.flush_dirty(now);
  if (introduced_at || close_at) return false;
  const std::string hello =
      packet_of(PacketKind::kHello, wire::encode(Introduction{self, attempt}));
  if (traffic.socket->write({}, hello) != Wrote::kSent) return false;
  introduced_at = now;
  return true;
}

void LinkClient::State::on_message(std::string_view packet) {
  if (given_up) return;
  const Time now = steady_now();
  const std::string_view body = packet.substr(1);
  switch (static_cast<PacketKind>(packet.front())) {
    case PacketKind::kFrames:
      return take_frames(packet, now);
    case PacketKind::kFence:
      return take_fence(packet);
    case PacketKind::kWelcome:
      return take_welcome(body, now);
    case PacketKind::kRefusal:
      return take_refusal(body);
    case PacketKind::kUnknown:
      return take_unknown(body);
    case PacketKind::kHeartbeat:
      if (server) traffic.take_heartbeat(*server, body, now);
      return;
    case PacketKind::kBye:
      if (!server) return;
      traffic.socket->write({}, packet_of(PacketKind::kBye));  // the server waits for it
      down(Down::Reason::kClosed);
      return;
    case PacketKind::kHello:
      break;
  }
  const std::lock_guard lock(traffic.mutex);
  ++traffic.counters.packets_malformed;
}

void LinkClient::State::take_frames(std::string_view packet, Time now) {
  if (server && traffic.receive(server, packet, now) == Received::kFenced) {
    down(Down::Reason::kSuperseded);
  }
}

void LinkClient::State::take_welcome(std::string_view body, Time now) {
  const auto welcome = wire::decode<Welcome>(body, {.message_bytes_max = kControlBytesMax});
  if (!welcome || server || welcome->attempt != attempt) return;
  const Epoch epoch{welcome->hello.incarnation.value};
  if (epoch < newest) return;  // an earlier controller that still runs
  newest = epoch;
  {
    const std::lock_guard lock(traffic.mutex);
    server = std::make_shared<LinkPeer>(std::string(), welcome->hello,
                                        SessionKey{epoch, self.incarnation, attempt},
                                        traffic.options.session, now);
    if (dial.to.is_local()) server->patience = Duration::zero();
  }
  traffic.callbacks.on_up(server->id, server->hello);
}

void LinkClient::State::take_refusal(std::string_view body) {
  auto refusal = wire::decode<Refusal>(body, {.message_bytes_max = kControlBytesMax});
  if (!refusal || server) return;
  give_up({.reason = Down::Reason::kRefused, .error = std::move(refusal->error)});
}

// A fence for a newer incarnation of this client ends the client for good. One for a newer session
// or epoch ends the session alone, and the client introduces itself again.
void LinkClient::State::take_fence(std::string_view packet) {
  const auto newer = Session::fence_key(packet);
  if (!newer) return;
  if (newer->incarnation > self.incarnation) {
    give_up({.reason = Down::Reason::kFenced,
             .error = {ErrorCode::kFailed, to_string(ActorId{self.name, self.incarnation}) +
                                               " was fenced: this incarnation of it is over"}});
  } else if (server && *newer > server->session.key()) {
    down(Down::Reason::kSuperseded);
  }
}

void LinkClient::State::take_unknown(std::string_view body) {
  // The server does not know this client: it has started anew, or has taken the client for lost.
  const auto epoch = wire::decode<Epoch>(body, {.message_bytes_max = kControlBytesMax});
  if (!epoch) return;
  if (server) {
    down(*epoch > newest ? Down::Reason::kSuperseded : Down::Reason::kDisconnected);
  } else {
    introduced_at.reset();
  }
}

void LinkClient::State::down(Down::Reason reason) {
  // New frames are refused before on_down is called, and those in the session are counted by it
  // (LK-3).
  std::shared_ptr<LinkPeer> was;
  {
    const std::lock_guard lock(traffic.mutex);
    was = std::exchange(server, nullptr);
  }
  introduce_anew();
  traffic.callbacks.on_down(was->id, traffic.down(*was, reason));
}

void LinkClient::State::introduce_anew() {
  ++attempt;
  introduced_at.reset();
}

void LinkClient::State::give_up(Down reason) {
  given_up = true;
  std::shared_ptr<LinkPeer> was;
  {
    const std::lock_guard lock(traffic.mutex);
    was = std::exchange(server, nullptr);
    if (was) reason.frames_unsent = was->session.frames_queued();
  }
  traffic.callbacks.on_down(was ? was->id : ActorId{}, reason);
}

void LinkClient::State::tick(Time now) {
  traffic.begin_tick(now);
  if (server) {
    const auto reason = traffic.tick(*server, now);
    if (reason) down(*reason);
    // The connection may be half open: begin with a new one.
    const bool silent = server && server->silent;
    if (reason == Down::Reason::kSilent ||
        (silent && now - connected_at > traffic.silence_max(*server)))
      connect_anew();
  } else if (introduced_at && now - *introduced_at > kIntroduceAgainAfter) {
    introduced_at.reset();
  }
  traffic.socket->pump();
  if (!close_at) return;
  const bool all = flushed();
  if (all || now >= *close_at) finish_close(all);
}

bool LinkClient::State::flushed() {
  const std::lock_guard lock(traffic.mutex);
  return !server || server->session.flushed();
}

void LinkClient::State::begin_close(Duration flush_within) {
  close_at = steady_now() + flush_within;
  const bool all = flushed();
  if (all || flush_within <= Duration::zero()) finish_close(all);
}

void LinkClient::State::finish_close(bool all) {
  {
    // The last frame of another thread is written before the good-bye, or not at all.
    const std::lock_guard order(traffic.writing);
    if (server) traffic.socket->write({}, packet_of(PacketKind::kBye));
    if (ticker) ticker->stop();
    if (traffic.socket) traffic.socket->close(kByeLinger);
  }
  traffic.closed.set_value(all);  // close() returns, and this object may be gone
}

LinkClient::LinkClient(IoThread& io, Dial server, Hello self, LinkOptions options,
                       LinkCallbacks callbacks)
    : state_(std::make_shared<State>(io, std::move(server), std::move(self), std::move(options),
                                     std::move(callbacks))) {
  CHECK(state_->self.name.size() <= kPeerNameBytesMax &&
        state_->self.opaque.size() <= kHelloOpaqueBytesMax);
}

LinkClient::~LinkClient() { close(Duration::zero()); }

void LinkClient::start() {
  state_->traffic.io.run([this] { state_->start(); });
}

Sent LinkClient::send(std::string frame) {
  std::unique_lock lock(state_->traffic.mutex);
  const std::shared_ptr<LinkPeer> server = state_->traffic.closing ? nullptr : state_->server;
  if (!server) return Sent::kGone;
  return state_->traffic.send(server, std::move(frame), std::move(lock), [state = state_] {
    state->traffic.woken();
    state->traffic.socket->pump();
  });
}

std::optional<PeerStatus> LinkClient::server() const {
  const std::lock_guard lock(state_->traffic.mutex);
  if (!state_->server) return std::nullopt;
  return state_->traffic.status(*state_->server);
}

bool LinkClient::close(Duration flush_within) {
  return state_->traffic.close(
      [state = state_, flush_within] { state->begin_close(flush_within); });
}

}  // namespace tandem::link
