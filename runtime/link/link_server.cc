// The server's end of all links: who may be a peer, and which incarnation of a name is up (LK-2).
//
// `names` has, for each name that it remembers, the least incarnation that may still come, its
// floor, and the peer that is up; `routes` finds the peer that is up by the routing id of its
// packets. Both change on the IoThread alone, under the mutex: the IoThread may read them without
// it, other threads with it.
//
// On an introduction: the build, the floor and the admission are checked first, because a peer that
// is refused must disturb nothing. Then an earlier session of that name goes down, and only then
// the new one comes up, so that on_down and on_up alternate (LK-1). A packet from a sender without
// a session is answered with a fence if its incarnation is over, else with Unknown, so that it
// introduces itself.
//
// Callbacks run without the mutex: they may call send().
#include <unistd.h>

#include <charconv>
#include <map>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/log.h"
#include "runtime/link/link.h"
#include "runtime/link/link_traffic.h"
#include "runtime/wire/codec.h"

namespace tandem::link {
namespace {

constexpr std::size_t kNamesMax = 65'536;  // names whose floor is remembered

// "name#incarnation~nonce" or "name#incarnation".
std::optional<ActorId> parse_route(std::string_view route) {
  route = route.substr(0, route.rfind('~'));
  const auto mark = route.rfind('#');
  if (mark == std::string_view::npos) return std::nullopt;
  ActorId peer{.name = std::string(route.substr(0, mark))};
  const char* const end = route.data() + route.size();
  const auto [stopped, failure] =
      std::from_chars(route.data() + mark + 1, end, peer.incarnation.value);
  if (failure != std::errc() || stopped != end) return std::nullopt;
  return peer;
}

}  // namespace

struct LinkServer::State : std::enable_shared_from_this<LinkServer::State> {
  State(IoThread& io, Hello hello, LinkOptions options, LinkCallbacks callbacks)
      : self(std::move(hello)), traffic(io, std::move(options), std::move(callbacks)) {
    if (self.pid == 0) self.pid = getpid();
    self.grace = traffic.options.remote_grace;
  }

  Result<void> bind(const std::vector<Binding>& at);
  void start();
  void on_message(std::string_view from, std::string_view packet);
  void introduce(std::string_view from, std::string_view body, Time now);
  bool acceptable(std::string_view from, const Introduction& who);
  bool refuse(std::string_view from, const Hello& hello, Error why);
  void refuse_unreadable(std::string_view from);
  void welcome(const LinkPeer& peer);
  void stranger(std::string_view from);
  void reply(std::string_view to, PacketKind kind, std::string_view body);
  void count(std::uint64_t LinkCounters::*counter);
  void up(std::string_view from, const Introduction& who, Time now);
  void down(std::shared_ptr<LinkPeer> peer, Down::Reason reason);
  void fence_life(const ActorId& peer);
  void tick(Time now);
  void begin_close(Duration flush_within);
  void say_bye(bool flushed);
  void take_bye(std::string_view from);
  void finish_close();
  bool all_flushed();

  Epoch epoch() const { return {self.incarnation.value}; }
  std::shared_ptr<LinkPeer> find(const ActorId& peer) const {  // mutex held, or on the IoThread
    const auto found = names.find(peer.name);
    const bool up = found != names.end() && found->second.up && found->second.up->id == peer;
    return up ? found->second.up : nullptr;
  }

  // One name. `up` is null while no incarnation is up; the floor stays then.
  struct Name {
    Incarnation floor;
    std::shared_ptr<LinkPeer> up;
  };

  Hello self;
  LinkTraffic traffic;
  std::vector<Endpoint> bound;
  // The names are changed on the IoThread under traffic.mutex; that thread reads them freely, other
  // threads under the mutex.
  std::map<std::string, Name> names;
  std::map<std::string, std::shared_ptr<LinkPeer>, std::less<>> routes;  // the peers that are up
  // These are used only on the IoThread.
  std::optional<Ticker> ticker;
  std::optional<Time> close_at;
  std::optional<Time> answered_by;  // it has said good-bye, and waits for the clients' until then
  bool all_written = false;         // before the good-bye
  bool abandoned = false;
};

Result<void> LinkServer::State::bind(const std::vector<Binding>& at) {
  CHECK(!at.empty());
  traffic.socket =
      std::make_unique<ZmqSocket>(traffic.io, zmq::socket_type::router, traffic.socket_options());
  for (const Binding& binding : at) {
    auto endpoint = traffic.socket->bind(binding);
    if (!endpoint) {
      traffic.socket.reset();
      return endpoint.error();
    }
    bound.push_back(std::move(*endpoint));
  }
  return {};
}

void LinkServer::State::start() {
  traffic.socket->start(
      [this](std::string_view from, std::span<zmq::message_t> parts) {
        if (parts.size() == 1 && !parts[0].empty()) {
          on_message(from, parts[0].to_string_view());
        } else {
          count(&LinkCounters::packets_malformed);
        }
      },
      [this] { return traffic.flush_dirty(steady_now()); });
  ticker.emplace(traffic.io, kLinkTick, [this](Time now) { tick(now); });
}

void LinkServer::State::count(std::uint64_t LinkCounters::*counter) {
  const std::lock_guard lock(traffic.mutex);
  ++(traffic.counters.*counter);
}

void LinkServer::State::reply(std::string_view to, PacketKind kind, std::string_view body) {
  traffic.socket->write(to, packet_of(kind, body));
}

void LinkServer::State::on_message(std::string_view from, std::string_view packet) {
  const Time now = steady_now();
  const auto kind = static_cast<PacketKind>(packet.front());
  const std::string_view body = packet.substr(1);
  if (answered_by) return kind == PacketKind::kBye ? take_bye(from) : void();
  if (kind == PacketKind::kHello) return introduce(from, body, now);
  const auto found = routes.find(from);
  if (found == routes.end()) return stranger(from);
  // A shared_ptr of its own: down() takes the peer out of both tables.
  const std::shared_ptr<LinkPeer> peer = found->second;
  switch (kind) {
    case PacketKind::kFrames:
    case PacketKind::kFence:
      if (traffic.receive(peer, packet, now) == Received::kFenced) {
        down(peer, Down::Reason::kSuperseded);
      }
      if (peer->refused) fence_life(peer->id);
      return;
    case PacketKind::kHeartbeat:
      return traffic.take_heartbeat(*peer, body, now);
    case PacketKind::kBye:
      return down(peer, Down::Reason::kClosed);
    case PacketKind::kHello:
    case PacketKind::kWelcome:
    case PacketKind::kRefusal:
    case PacketKind::kUnknown:
      break;
  }
  count(&LinkCounters::packets_malformed);
}

// A packet of a sender without a session: this server has not seen its introduction, or its
// incarnation is over.
void LinkServer::State::stranger(std::string_view from) {
  const std::optional<ActorId> peer = parse_route(from);
  if (!peer) return count(&LinkCounters::packets_malformed);
  const auto name = names.find(peer->name);
  if (name != names.end() && peer->incarnation < name->second.floor) {
    count(&LinkCounters::packets_stale);
    traffic.socket->write(from, Session::fence({epoch(), name->second.floor, 0}));
    return;
  }
  reply(from, PacketKind::kUnknown, wire::encode(epoch()));
}

bool LinkServer::State::acceptable(std::string_view from, const Introduction& who) {
  const Hello& hello = who.hello;
  // The routing id must name the same peer as the introduction, else one client could speak for
  // another.
  if (parse_route(from) != ActorId{hello.name, hello.incarnation} ||
      hello.opaque.size() > kHelloOpaqueBytesMax) {
    return false;
  }
  if (hello.build != self.build) {
    return refuse(
        from, hello,
        {ErrorCode::kInvalid, "its build is '" + hello.build + "', ours is '" + self.build + "'",
         "", "start every process of a cluster from the same binary"});
  }
  if (auto one = one_program(self.program, self.name, hello.program, hello.name); !one)
    return refuse(from, hello, one.error());
  const auto name = names.find(hello.name);
  if (name != names.end() && hello.incarnation < name->second.floor) {
    traffic.socket->write(from, Session::fence({epoch(), name->second.floor, 0}));
    return false;
  }
  // LK-2: a second socket that claims the incarnation that is up. It has another nonce.
  const bool is_up = name != names.end() && name->second.up;
  if (is_up && name->second.up->id.incarnation == hello.incarnation &&
      name->second.up->route != from) {
    return refuse(from, hello, {ErrorCode::kInvalid, "that incarnation is here already"});
  }
  if (traffic.callbacks.admit)
    if (const auto may = traffic.callbacks.admit(hello); !may)
      return refuse(from, hello, may.error());
  // A peer too many gets no answer: it introduces itself again later, and gets in once there is
  // room.
  return routes.size() < traffic.options.peers_max || routes.contains(from);
}

// Logs the refusal, and tells the client never to come back as it is. Returns false, for
// acceptable().
bool LinkServer::State::refuse(std::string_view from, const Hello& hello, Error why) {
  const std::string peer = to_string(ActorId{hello.name, hello.incarnation});
  log::warn("link refused peer={} reason=\"{}\"", peer, why.message);
  why.message = self.name + " refused " + peer + ": " + why.message;
  why.where = to_string(bound.front());
  reply(from, PacketKind::kRefusal, wire::encode(Refusal{std::move(why)}));
  return false;
}

// An introduction that cannot be read may be that of another version of Tandem, which is to know.
void LinkServer::State::refuse_unreadable(std::string_view from) {
  const std::optional<ActorId> peer = parse_route(from);
  if (!peer) return;
  const std::string ours =
      self.program.version.empty() ? "" : "; " + self.name + " is " + to_string(self.program);
  refuse(from, {.name = peer->name, .incarnation = peer->incarnation},
         {ErrorCode::kInvalid, "its introduction is that of another version" + ours, "",
          "start every process of a cluster from copies of one binary"});
}

void LinkServer::State::introduce(std::string_view from, std::string_view body, Time now) {
  const auto who = wire::decode<Introduction>(body, {.message_bytes_max = kControlBytesMax});
  if (!who && !close_at) refuse_unreadable(from);
  if (!who || close_at || !acceptable(from, *who)) return count(&LinkCounters::hellos_refused);
  const auto name = names.find(who->hello.name);
  if (name != names.end() && name->second.up) {
    const std::shared_ptr<LinkPeer> before = name->second.up;
    const bool same_life = before->id.incarnation == who->hello.incarnation;
    const std::uint64_t attempt = before->session.key().attempt;
    if (same_life && who->attempt < attempt) return;  // a late copy of an earlier introduction
    if (same_life && who->attempt == attempt) return welcome(*before);  // the Welcome was lost
    down(before, same_life ? Down::Reason::kDisconnected : Down::Reason::kSuperseded);
    if (!same_life) {
      traffic.socket->write(before->route, Session::fence({epoch(), who->hello.incarnation, 0}));
    }
  }
  up(from, *who, now);
}

void LinkServer::State::up(std::string_view from, const Introduction& who, Time now) {
  auto peer = std::make_shared<LinkPeer>(std::string(from), who.hello,
                                         SessionKey{epoch(), who.hello.incarnation, who.attempt},
                                         traffic.options.session, now);
  const bool has_grace = who.hello.remote && self.grace > Duration::zero();
  peer->patience = has_grace ? self.grace + kGraceMargin : Duration::zero();
  {
    // Other threads find the peer once it is in the tables. None of them writes a frame ahead of
    // the Welcome, where the client would not know the session.
    const std::lock_guard order(traffic.writing);
    {
      const std::lock_guard lock(traffic.mutex);
      if (names.size() >= kNamesMax && !names.contains(peer->id.name)) {
        // Bounded memory: the floors of names that are not up are forgotten.
        std::erase_if(names, [](const auto& entry) { return !entry.second.up; });
      }
      names[peer->id.name] = {peer->id.incarnation, peer};
      routes[peer->route] = peer;
    }
    welcome(*peer);
  }
  traffic.callbacks.on_up(peer->id, peer->hello);
}

void LinkServer::State::welcome(const LinkPeer& peer) {
  reply(peer.route, PacketKind::kWelcome, wire::encode(Welcome{self, peer.session.key().attempt}));
}

void LinkServer::State::down(std::shared_ptr<LinkPeer> peer, Down::Reason reason) {
  {
    const std::lock_guard lock(traffic.mutex);
    routes.erase(peer->route);
    names[peer->id.name].up = nullptr;
  }
  traffic.callbacks.on_down(peer->id, traffic.down(*peer, reason));
}

void LinkServer::State::fence_life(const ActorId& id) {
  if (!traffic.socket) return;
  const Incarnation next{id.incarnation.value + 1};
  std::shared_ptr<LinkPeer> peer;
  {
    const std::lock_guard lock(traffic.mutex);
    peer = find(id);
    Name& name = names[id.name];
    name.floor = std::max(name.floor, next);
  }
  // If this incarnation is not up, it is fenced when it sends its first packet.
  if (peer) traffic.socket->write(peer->route, Session::fence({epoch(), next, 0}));
  if (peer) down(peer, Down::Reason::kFenced);
}

void LinkServer::State::tick(Time now) {
  traffic.begin_tick(now);
  if (answered_by) {
    traffic.socket->pump();
    if (answered_by && now >= *answered_by) finish_close();
    return;
  }
  // A copy, because down() changes `routes`.
  std::vector<std::shared_ptr<LinkPeer>> peers;
  for (const auto& [route, peer] : routes) peers.push_back(peer);
  for (const auto& peer : peers) {
    if (const auto reason = traffic.tick(*peer, now)) down(peer, *reason);
    if (peer->refused) fence_life(peer->id);
  }
  traffic.socket->pump();
  if (!close_at) return;
  const bool flushed = all_flushed();
  if (flushed || now >= *close_at) say_bye(flushed);
}

bool LinkServer::State::all_flushed() {
  const std::lock_guard lock(traffic.mutex);
  for (const auto& [route, peer] : routes) {
    if (!peer->session.flushed()) return false;
  }
  return true;
}

void LinkServer::State::begin_close(Duration flush_within) {
  close_at = steady_now() + flush_within;
  const bool flushed = all_flushed();
  const bool at_once = flush_within <= Duration::zero();
  if (flushed || at_once) say_bye(flushed);
  if (at_once && answered_by) finish_close();
}

void LinkServer::State::say_bye(bool flushed) {
  all_written = flushed;
  {
    // A frame of another thread that is written behind the good-bye is dropped by the client.
    const std::lock_guard order(traffic.writing);
    if (!abandoned)
      for (const auto& [route, peer] : routes) reply(route, PacketKind::kBye, {});
  }
  if (abandoned || routes.empty() || !ticker) return finish_close();
  answered_by = steady_now() + kByeAnswered;
}

void LinkServer::State::take_bye(std::string_view from) {
  const auto peer = routes.find(from);
  if (peer == routes.end()) return;
  {
    const std::lock_guard lock(traffic.mutex);
    names[peer->second->id.name].up = nullptr;
    routes.erase(peer);
  }
  if (routes.empty()) answered_by = steady_now();  // the next tick closes the socket
}

void LinkServer::State::finish_close() {
  answered_by.reset();
  if (ticker) ticker->stop();
  traffic.socket->close(kByeLinger);
  traffic.closed.set_value(all_written);  // close() returns, and this object may be gone
}

LinkServer::LinkServer(std::shared_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<LinkServer>> LinkServer::listen(IoThread& io, const std::vector<Binding>& at,
                                                       Hello self, LinkOptions options,
                                                       LinkCallbacks callbacks) {
  auto state =
      std::make_shared<State>(io, std::move(self), std::move(options), std::move(callbacks));
  Result<void> bound;
  io.run([&] { bound = state->bind(at); });
  if (!bound) return bound.error();
  return std::unique_ptr<LinkServer>(new LinkServer(std::move(state)));
}

LinkServer::~LinkServer() { close(Duration::zero()); }

void LinkServer::start() {
  state_->traffic.io.run([this] { state_->start(); });
}

const std::vector<Endpoint>& LinkServer::endpoints() const { return state_->bound; }

Sent LinkServer::send(const ActorId& id, std::string frame) {
  std::unique_lock lock(state_->traffic.mutex);
  const std::shared_ptr<LinkPeer> peer = state_->traffic.closing ? nullptr : state_->find(id);
  if (!peer) return Sent::kGone;
  return state_->traffic.send(peer, std::move(frame), std::move(lock), [state = state_] {
    state->traffic.woken();
    state->traffic.socket->pump();
  });
}

void LinkServer::fence(const ActorId& peer) {
  state_->traffic.io.post([state = state_, peer] { state->fence_life(peer); });
}

std::vector<PeerStatus> LinkServer::peers() const {
  const std::lock_guard lock(state_->traffic.mutex);
  std::vector<PeerStatus> all;
  for (const auto& [route, peer] : state_->routes) all.push_back(state_->traffic.status(*peer));
  return all;
}

std::optional<PeerStatus> LinkServer::status(const ActorId& id) const {
  const std::lock_guard lock(state_->traffic.mutex);
  const auto peer = state_->find(id);
  if (!peer) return std::nullopt;
  return state_->traffic.status(*peer);
}

LinkCounters LinkServer::counters() const {
  const std::lock_guard lock(state_->traffic.mutex);
  return state_->traffic.counters;
}

bool LinkServer::close(Duration flush_within) {
  return state_->traffic.close(
      [state = state_, flush_within] { state->begin_close(flush_within); });
}

void LinkServer::abandon() {
  state_->traffic.close([state = state_] {
    state->abandoned = true;
    state->begin_close(Duration::zero());
  });
}

}  // namespace tandem::link
