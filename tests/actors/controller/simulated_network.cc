// Each packet is a closure that runs at the other end, if it is not lost. A server that has died
// has left the packets of its time behind: they carry its epoch, and are dropped where another one
// stands.
#include "tests/actors/controller/simulated_network.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/base/check.h"

namespace tandem::controller {

using link::Down;
using link::Offer;
using link::Sent;

namespace {

constexpr Duration kOfferAgainAfter = std::chrono::milliseconds(1);
constexpr Duration kIntroduceAgainAfter = std::chrono::milliseconds(250);
constexpr Duration kBeat = std::chrono::milliseconds(200);
const ActorId kServer{"controller", {1}};

Error lost_with(Down::Reason reason) {
  return {ErrorCode::kUnreachable, std::string("the link is ") + link::name(reason)};
}

}  // namespace

SimulatedNetwork::SimulatedNetwork(actor::SimulatedExecutor& executor,
                                   const NetworkConditions& conditions)
    : executor_(executor), conditions_(conditions), rng_(executor.draw_seed()) {}

void SimulatedNetwork::serve(link::LinkCallbacks callbacks) { server_ = std::move(callbacks); }

Duration SimulatedNetwork::draw(Duration min, Duration max) {
  return min + Duration(rng_.below(static_cast<std::uint64_t>((max - min).count()) + 1));
}

SimulatedNetwork::SharedClient SimulatedNetwork::find(const ActorId& id) const {
  const auto it = clients_.find(id);
  return it == clients_.end() ? nullptr : it->second;
}

SimulatedNetwork::SharedPeer SimulatedNetwork::peer_of(const SharedClient& client) const {
  const auto name = names_.find(client->id.name);
  return name != names_.end() && name->second.up && name->second.up->client == client
             ? name->second.up
             : nullptr;
}

void SimulatedNetwork::lose_server() {
  if (const auto after = std::exchange(lost_server_wakes_after_, std::nullopt)) {
    std::vector<SharedPeer> peers;
    for (const auto& [name, entry] : names_)
      if (entry.up) peers.push_back(entry.up);
    executor_.at(executor_.now() + *after, [this, peers] { wake(peers); });
  }
  server_ = {};
  epoch_ = Epoch{epoch_.value + 1};
  server_full_until_ = {};
  for (auto& [name, entry] : names_)
    if (entry.up) entry.up->end->over = true;
  names_.clear();
  std::erase_if(clients_, [](const auto& entry) { return !entry.second->alive; });
  for (const auto& [id, client] : clients_) {
    if (!client->end) continue;
    executor_.at(executor_.now() + draw(Duration{0}, conditions_.down_after_max),
                 [this, client, end = client->end] {
                   if (client->alive && client->end == end && client->stops == 0)
                     client_down(client, Down::Reason::kDisconnected);
                 });
  }
  disturbed();
}

void SimulatedNetwork::wake(const std::vector<SharedPeer>& peers_of_lost_server) {
  for (const SharedPeer& peer : peers_of_lost_server) {
    const SharedClient& client = peer->client;
    link::Session& session = peer->end->session;
    // A client that no other server has let in has not heard of one.
    if (!client->alive || !client->end || client->end->session.key().epoch <= session.key().epoch)
      continue;
    session.reconnected();
    (void)session.send("an order of the server before");
    while (auto packet = session.next_packet(executor_.now()))
      carry(client, Way::kToClient, [this, client, sender = peer->end, packet = *packet] {
        take_late(client, sender, packet);
      });
  }
}

void SimulatedNetwork::take_late(const SharedClient& client, const std::shared_ptr<End>& sender,
                                 const std::string& packet) {
  if (!client->end) return;
  std::vector<std::string> delivered;
  std::optional<std::string> fence, nothing;
  const auto received = client->end->session.receive(packet, executor_.now(), delivered, fence);
  CHECK(received == link::Received::kStale && delivered.empty() && fence && "SE-3");
  const auto answered = sender->session.receive(*fence, executor_.now(), delivered, nothing);
  CHECK(answered == link::Received::kFenced && delivered.empty() && "SE-3");
  ++late_packets_refused_;
}

void SimulatedNetwork::dial(const std::string& host, const link::Hello& hello,
                            link::LinkCallbacks callbacks,
                            std::function<link::ProgressReport()> progress) {
  const ActorId id{hello.name, hello.incarnation};
  const auto client =
      std::make_shared<Client>(Client{id, hello, host, std::move(callbacks), std::move(progress)});
  CHECK(clients_.emplace(id, client).second);
  executor_.at(executor_.now() + draw(conditions_.delay_min, conditions_.delay_max) * 2,
               [this, client] { introduce(client); });
}

// Again and again, until it is answered.
void SimulatedNetwork::introduce(const SharedClient& client) {
  if (!client->alive || client->given_up || client->end) return;
  const std::uint64_t attempt = client->attempt;
  if (client->stops == 0)
    carry(client, Way::kToServer, [this, client, attempt] { take_hello(client, attempt); });
  executor_.at(executor_.now() + kIntroduceAgainAfter, [this, client, attempt] {
    if (client->attempt == attempt) introduce(client);
  });
}

void SimulatedNetwork::take_hello(const SharedClient& client, std::uint64_t attempt) {
  if (!server_.on_up || !client->alive) return;
  const link::Hello& hello = client->hello;
  const auto name = names_.find(hello.name);
  if (name != names_.end() && hello.incarnation < name->second.floor)
    return send_fence(client, name->second.floor);
  if (server_.admit && !server_.admit(hello))
    return carry(client, Way::kToClient, [this, client] {
      if (!client->end) give_up(client, Down::Reason::kRefused);
    });
  if (name != names_.end() && name->second.up) {  // LK-2
    const SharedPeer before = name->second.up;
    const bool same_life = before->client == client;
    if (same_life && attempt < before->attempt) return;
    if (same_life && attempt == before->attempt) return welcome(before);
    CHECK(same_life || before->client->id.incarnation < hello.incarnation);
    server_down(before, same_life ? Down::Reason::kDisconnected : Down::Reason::kSuperseded);
    if (!same_life) send_fence(before->client, hello.incarnation);
  }
  let_in(client, attempt);
}

void SimulatedNetwork::let_in(const SharedClient& client, std::uint64_t attempt) {
  const link::SessionKey key{epoch_, client->id.incarnation, attempt};
  const auto peer = std::make_shared<Peer>(Peer{client, attempt, std::make_shared<End>(key),
                                                executor_.now(), false, 0, executor_.now()});
  names_[client->id.name] = {client->id.incarnation, peer};
  welcome(peer);
  server_.on_up(client->id, client->hello);
}

void SimulatedNetwork::welcome(const SharedPeer& peer) {
  carry(peer->client, Way::kToClient,
        [this, client = peer->client, attempt = peer->attempt, epoch = epoch_] {
          take_welcome(client, attempt, epoch);
        });
}

void SimulatedNetwork::take_welcome(const SharedClient& client, std::uint64_t attempt,
                                    Epoch epoch) {
  if (client->end || client->given_up || attempt != client->attempt || epoch < client->newest)
    return;
  client->newest = epoch;
  client->heard = executor_.now();
  client->silent = false;
  client->end = std::make_shared<End>(link::SessionKey{epoch, client->id.incarnation, attempt});
  link::Hello server = client->hello;
  server.grace = conditions_.grace;
  client->callbacks.on_up(kServer, server);
}

// The server does not know the session of the sender.
void SimulatedNetwork::answer_stranger(const SharedClient& client) {
  if (!server_.on_up) return;
  const auto name = names_.find(client->id.name);
  if (name != names_.end() && client->id.incarnation < name->second.floor)
    return send_fence(client, name->second.floor);
  carry(client, Way::kToClient, [this, client, epoch = epoch_] {
    if (client->end)
      client_down(client,
                  epoch > client->newest ? Down::Reason::kSuperseded : Down::Reason::kDisconnected);
  });
}

void SimulatedNetwork::send_fence(const SharedClient& client, Incarnation floor) {
  carry(client, Way::kToClient, [this, client, floor] {
    if (floor > client->id.incarnation && !client->given_up) give_up(client, Down::Reason::kFenced);
  });
}

void SimulatedNetwork::fence(const ActorId& id) {
  Name& name = names_[id.name];
  name.floor = std::max(name.floor, Incarnation{id.incarnation.value + 1});
  if (!name.up || name.up->client->id != id) return;
  const SharedPeer peer = name.up;
  send_fence(peer->client, name.floor);
  server_down(peer, Down::Reason::kFenced);
}

void SimulatedNetwork::server_down(const SharedPeer& peer, Down::Reason reason) {
  if (std::exchange(peer->end->over, true)) return;
  names_.at(peer->client->id.name).up = nullptr;
  if (!peer->client->alive) clients_.erase(peer->client->id);
  server_.on_down(peer->client->id, {.reason = reason,
                                     .frames_unsent = peer->end->session.frames_queued(),
                                     .error = lost_with(reason)});
  disturbed();
}

void SimulatedNetwork::client_down(const SharedClient& client, Down::Reason reason) {
  const auto end = std::exchange(client->end, nullptr);
  end->over = true;
  ++client->attempt;
  introduce(client);
  if (client->callbacks.on_down)
    client->callbacks.on_down(kServer, {.reason = reason,
                                        .frames_unsent = end->session.frames_queued(),
                                        .error = lost_with(reason)});
}

void SimulatedNetwork::give_up(const SharedClient& client, Down::Reason reason) {
  client->given_up = true;
  if (const auto end = std::exchange(client->end, nullptr)) end->over = true;
  if (client->callbacks.on_down)
    client->callbacks.on_down(kServer, {.reason = reason, .error = lost_with(reason)});
}

void SimulatedNetwork::cut(const ActorId& id) {
  const SharedClient client = find(id);
  if (!client) return;
  client->alive = false;
  client->held.clear();
  if (client->end) client->end->over = true;
  const SharedPeer peer = peer_of(client);
  if (!peer) return void(clients_.erase(id));
  const Duration notice = draw(conditions_.delay_max, conditions_.delay_max * 2) +
                          draw(Duration{0}, conditions_.down_after_max);
  executor_.at(executor_.now() + notice, [this, client, peer] {
    if (peer->end->over) return;
    if (way_cut(*client, Way::kToServer)) return disturbed();  // silence tells
    server_down(peer, Down::Reason::kDisconnected);
  });
}

Sent SimulatedNetwork::to_server(const ActorId& from, std::string frame) {
  const SharedClient client = find(from);
  if (!client || !client->alive || !client->end) return Sent::kGone;
  const Sent sent = client->end->session.send(std::move(frame));
  pump(client, Way::kToServer, client->end);
  return sent;
}

Sent SimulatedNetwork::to_client(const ActorId& to, std::string frame) {
  const auto name = names_.find(to.name);
  if (name == names_.end() || !name->second.up || name->second.up->client->id != to)
    return Sent::kGone;
  const SharedPeer peer = name->second.up;
  const Sent sent = peer->end->session.send(std::move(frame));
  pump(peer->client, Way::kToClient, peer->end);
  return sent;
}

std::vector<link::PeerStatus> SimulatedNetwork::peers() {
  std::vector<link::PeerStatus> all;
  for (const auto& [name, entry] : names_) {
    if (!entry.up) continue;
    Peer& peer = *entry.up;
    const Client& client = *peer.client;
    const bool beats = client.alive && client.stops == 0 && !way_cut(client, Way::kToServer);
    link::ProgressReport progress =
        client.progress ? client.progress() : link::ProgressReport{.phase = "idle"};
    if (beats && progress.counter != peer.progress_counter) {
      peer.progress_counter = progress.counter;
      peer.progress_changed = executor_.now();
    }
    progress.still = executor_.now() - peer.progress_changed;
    all.push_back({.peer = client.id,
                   .hello = client.hello,
                   .last_heard = peer.heard,
                   .silent = peer.silent,
                   .progress = progress,
                   .progress_changed = peer.progress_changed,
                   .session = peer.end->session.counters()});
  }
  return all;
}

bool SimulatedNetwork::way_cut(const Client& client, Way way) const {
  return !ways_cut_.empty() &&
         (ways_cut_.contains({client.host, way}) || ways_cut_.contains({client.id.name, way}));
}

void SimulatedNetwork::cut_way(const std::string& host_or_name, Way way) {
  ways_cut_.emplace(host_or_name, way);
  disturbed();
}

void SimulatedNetwork::mend_way(const std::string& host_or_name, Way way) {
  const auto found = ways_cut_.find({host_or_name, way});
  CHECK(found != ways_cut_.end());
  ways_cut_.erase(found);
}

void SimulatedNetwork::stop(const ActorId& id) {
  if (const SharedClient client = find(id)) ++client->stops;
  disturbed();
}

// Packets that have waited come first. A process that was stopped blames nobody for the silence.
void SimulatedNetwork::go_on(const ActorId& id) {
  const SharedClient client = find(id);
  if (!client || --client->stops > 0) return;
  client->heard = executor_.now();
  for (const auto& arrive : std::exchange(client->held, {}))
    if (client->alive) arrive();
  if (client->end) pump(client, Way::kToServer, client->end);
}

void SimulatedNetwork::fill_client(const ActorId& id, Time until) {
  if (const SharedClient client = find(id)) client->full_until = until;
}

void SimulatedNetwork::lose_packets(double fraction) { lost_ = fraction; }

void SimulatedNetwork::carry(const SharedClient& client, Way way, std::function<void()> arrive) {
  ++packets_sent_;
  if (happens(conditions_.lost) || happens(lost_) || way_cut(*client, way)) return;
  const int copies = happens(conditions_.repeated) ? 2 : 1;
  for (int i = 0; i < copies; ++i) {
    Time when = executor_.now() + draw(conditions_.delay_min, conditions_.delay_max);
    Time& last = client->last_arrival[static_cast<std::size_t>(way)];
    if (!conditions_.overtaken) when = std::max(when, last);
    last = std::max(when, last);
    executor_.at(when, [this, client, way, epoch = epoch_, arrive] {
      if (epoch != epoch_) return;
      if (way == Way::kToServer) return arrive();
      if (!client->alive) return;
      if (client->stops > 0) return client->held.push_back(arrive);
      arrive();
    });
  }
}

void SimulatedNetwork::pump(const SharedClient& client, Way way, const std::shared_ptr<End>& end) {
  const SharedPeer peer = peer_of(client);
  if (way == Way::kToClient && peer && peer->end == end && peer->silent) return;
  if (end->over || (way == Way::kToServer && (client->stops > 0 || !client->alive))) return;
  while (auto packet = end->session.next_packet(executor_.now()))
    carry(client, way,
          [this, client, way, packet = std::move(*packet)] { take_frames(client, way, packet); });
  const std::optional<Time> deadline = end->session.next_deadline();
  if (!deadline || (end->deadline && *end->deadline <= *deadline)) return;
  end->deadline = deadline;
  executor_.at(*deadline, [this, client, way, end] {
    end->deadline.reset();
    pump(client, way, end);
  });
}

void SimulatedNetwork::take_frames(const SharedClient& client, Way way, const std::string& packet) {
  const bool at_server = way == Way::kToServer;
  if (at_server && !server_.on_up) return;
  const SharedPeer peer = at_server ? peer_of(client) : nullptr;
  if (at_server && !peer) return answer_stranger(client);
  const std::shared_ptr<End> end = at_server ? peer->end : client->end;
  if (!end) return;
  const Way back = at_server ? Way::kToClient : Way::kToServer;
  std::vector<std::string> delivered;
  std::optional<std::string> answer;
  const auto received = end->session.receive(packet, executor_.now(), delivered, answer);
  CHECK(received != link::Received::kMalformed);
  if (answer)
    carry(client, back,
          [this, client, back, answer = std::move(*answer)] { take_frames(client, back, answer); });
  if (received == link::Received::kFenced)
    return at_server ? server_down(peer, Down::Reason::kSuperseded)
                     : client_down(client, Down::Reason::kSuperseded);
  at_server ? hears(peer) : hears(client);
  for (std::string& frame : delivered) end->delivered.push_back(std::move(frame));
  if (!end->offering) offer(client, way, end);
  pump(client, back, end);
}

void SimulatedNetwork::offer(const SharedClient& client, Way to, const std::shared_ptr<End>& end) {
  const bool at_server = to == Way::kToServer;
  const Way back = at_server ? Way::kToClient : Way::kToServer;
  while (!end->delivered.empty() && !end->over) {
    if (!at_server && client->stops > 0) return;
    const Time full_until = at_server ? server_full_until_ : client->full_until;
    const auto& callbacks = at_server ? server_ : client->callbacks;
    const Offer taken =
        executor_.now() < full_until
            ? Offer::kLater
            : callbacks.on_parcel(at_server ? client->id : kServer, end->delivered.front());
    if (taken == Offer::kLater) {
      ++put_off_;
      end->offering = true;
      executor_.at(std::max(executor_.now() + kOfferAgainAfter, full_until),
                   [this, client, to, back, end] {
                     end->offering = false;
                     offer(client, to, end);
                     pump(client, back, end);
                   });
      return;
    }
    CHECK(taken == Offer::kTaken);  // all of these peers are honest
    end->delivered.pop_front();
    end->session.release(1, executor_.now());
  }
}

void SimulatedNetwork::disturbed() {
  if (std::exchange(beating_, true)) return;
  for (const auto& [id, client] : clients_) client->heard = executor_.now();
  for (const auto& [name, entry] : names_)
    if (entry.up) entry.up->heard = executor_.now();
  executor_.at(executor_.now() + kBeat, [this] { beat(); });
}

// Both tables may change under the callbacks of a peer that goes down.
void SimulatedNetwork::beat() {
  const Time now = executor_.now();
  const auto clients = clients_;
  for (const auto& [id, client] : clients) {
    if (!client->alive || client->stops > 0 || !client->end) continue;
    const SharedPeer peer = peer_of(client);
    const bool same = peer && peer->attempt == client->attempt;
    if (same && !peer->silent && !way_cut(*client, Way::kToClient)) hears(client);
    if (!way_cut(*client, Way::kToServer)) {
      if (peer) hears(peer);
      if (!peer && server_.on_up)
        carry(client, Way::kToServer, [this, client] {
          if (!peer_of(client)) answer_stranger(client);
        });
    }
    if (client->end) judge(client);
  }
  const auto names = names_;
  for (const auto& [name, entry] : names)
    if (entry.up && !entry.up->end->over) judge(entry.up);
  beating_ = !all_well();
  if (beating_) executor_.at(now + kBeat, [this] { beat(); });
}

void SimulatedNetwork::hears(const SharedPeer& peer) {
  peer->heard = executor_.now();
  if (!std::exchange(peer->silent, false)) return;
  peer->progress_changed = executor_.now();
  peer->end->session.reconnected();
  if (server_.on_silence) server_.on_silence(peer->client->id, false);
  pump(peer->client, Way::kToClient, peer->end);
}

void SimulatedNetwork::hears(const SharedClient& client) {
  client->heard = executor_.now();
  if (!std::exchange(client->silent, false)) return;
  client->end->session.reconnected();
  pump(client, Way::kToServer, client->end);
}

void SimulatedNetwork::judge(const SharedPeer& peer) {
  const Duration silence = executor_.now() - peer->heard;
  if (silence <= conditions_.peer_timeout) return;
  if (!conditions_.remote || silence > conditions_.grace + link::kGraceMargin)
    return server_down(peer, Down::Reason::kSilent);
  if (!std::exchange(peer->silent, true) && server_.on_silence)
    server_.on_silence(peer->client->id, true);
}

void SimulatedNetwork::judge(const SharedClient& client) {
  const Duration silence = executor_.now() - client->heard;
  if (silence <= conditions_.peer_timeout) return;
  if (!conditions_.remote || silence > conditions_.grace)
    return client_down(client, Down::Reason::kSilent);
  client->silent = true;
}

bool SimulatedNetwork::all_well() const {
  if (!ways_cut_.empty() || lost_ > 0 || !server_.on_up) return false;
  return std::all_of(clients_.begin(), clients_.end(), [this](const auto& entry) {
    const SharedClient& client = entry.second;
    if (client->given_up) return true;
    const SharedPeer peer = peer_of(client);
    return client->alive && client->stops == 0 && client->end && peer && !client->silent &&
           !peer->silent && peer->attempt == client->attempt;
  });
}

}  // namespace tandem::controller
