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
constexpr Duration kDialAgainAfter = std::chrono::milliseconds(50);

}  // namespace

SimulatedNetwork::SimulatedNetwork(actor::SimulatedExecutor& executor,
                                   const NetworkConditions& conditions)
    : executor_(executor), conditions_(conditions), rng_(executor.draw_seed()) {}

void SimulatedNetwork::serve(link::LinkCallbacks callbacks) { server_ = std::move(callbacks); }

void SimulatedNetwork::lose_server() {
  server_ = {};
  epoch_ = Epoch{epoch_.value + 1};
  for (const auto& [peer, connection] : connections_) {
    // It stays until its client dials again or ends.
    if (std::exchange(connection->over, true)) continue;
    const bool was_up = std::exchange(connection->up, false);
    if (!connection->alive) continue;
    executor_.at(executor_.now() + draw(Duration{0}, conditions_.down_after_max),
                 [this, connection, was_up] { dial_again(connection, was_up); });
  }
  std::erase_if(connections_, [](const auto& entry) { return !entry.second->alive; });
}

void SimulatedNetwork::dial_again(const Shared& connection, bool was_up) {
  if (connection->alive && was_up && connection->callbacks.on_down)
    connection->callbacks.on_down(connection->peer, {.reason = Down::Reason::kDisconnected});
  if (!connection->alive) return;  // cut() has taken it out
  connections_.erase(connection->peer);
  dial(connection->hello, connection->callbacks);
}

Duration SimulatedNetwork::draw(Duration min, Duration max) {
  return min + Duration(rng_.below(static_cast<std::uint64_t>((max - min).count()) + 1));
}

SimulatedNetwork::Shared SimulatedNetwork::find(const ActorId& peer) const {
  const auto it = connections_.find(peer);
  return it == connections_.end() ? nullptr : it->second;
}

void SimulatedNetwork::dial(const link::Hello& hello, link::LinkCallbacks callbacks) {
  const ActorId peer{hello.name, hello.incarnation};
  const link::SessionKey key{.epoch = epoch_, .incarnation = hello.incarnation, .attempt = 1};
  const auto connection = std::make_shared<Connection>(
      Connection{peer, hello, std::move(callbacks), {End(key), End(key)}});
  CHECK(connections_.emplace(peer, connection).second);
  executor_.at(executor_.now() + draw(conditions_.delay_min, conditions_.delay_max) * 3,
               [this, connection] { connected(connection); });
}

void SimulatedNetwork::connected(const Shared& connection) {
  if (connection->over || !connection->alive) return;
  if (!server_.on_up) {  // nobody listens
    executor_.at(executor_.now() + kDialAgainAfter, [this, connection] { connected(connection); });
    return;
  }
  if (server_.admit && !server_.admit(connection->hello)) {
    connection->over = true;
    connections_.erase(connection->peer);
    if (connection->callbacks.on_down)
      connection->callbacks.on_down(connection->peer, {.reason = Down::Reason::kRefused});
    return;
  }
  std::vector<Shared> older;  // LK-2
  for (const auto& [peer, other] : connections_)
    if (peer.name == connection->peer.name && other != connection && other->up)
      older.push_back(other);
  for (const Shared& other : older) {
    CHECK(other->peer.incarnation < connection->peer.incarnation);
    down(other, Down::Reason::kSuperseded);
  }
  connection->up = true;
  server_.on_up(connection->peer, connection->hello);
  connection->callbacks.on_up(connection->peer, connection->hello);
}

void SimulatedNetwork::cut(const ActorId& client) {
  const Shared connection = find(client);
  if (!connection || !connection->alive) return;
  connection->alive = false;
  if (connection->over) {
    connections_.erase(client);
    return;
  }
  const Duration notice = draw(conditions_.delay_max, conditions_.delay_max * 2) +
                          draw(Duration{0}, conditions_.down_after_max);
  executor_.at(executor_.now() + notice,
               [this, connection] { down(connection, Down::Reason::kDisconnected); });
}

void SimulatedNetwork::down(const Shared& connection, Down::Reason reason) {
  if (std::exchange(connection->over, true)) return;
  connections_.erase(connection->peer);
  if (!std::exchange(connection->up, false)) return;
  server_.on_down(
      connection->peer,
      {.reason = reason, .frames_unsent = connection->end(Side::kServer).session.frames_queued()});
}

Sent SimulatedNetwork::to_server(const ActorId& from, std::string frame) {
  const Shared connection = find(from);
  if (!connection || !connection->up || !connection->alive) return Sent::kGone;
  return send(connection, Side::kClient, std::move(frame));
}

Sent SimulatedNetwork::to_client(const ActorId& to, std::string frame) {
  const Shared connection = find(to);
  if (!connection || !connection->up) return Sent::kGone;
  return send(connection, Side::kServer, std::move(frame));
}

std::size_t SimulatedNetwork::clients_up() const {
  return static_cast<std::size_t>(
      std::count_if(connections_.begin(), connections_.end(),
                    [](const auto& entry) { return entry.second->up && entry.second->alive; }));
}

Sent SimulatedNetwork::send(const Shared& connection, Side from, std::string frame) {
  const Sent sent = connection->end(from).session.send(std::move(frame));
  pump(connection, from);
  return sent;
}

bool SimulatedNetwork::listens(const Connection& connection, Side side) const {
  return connection.up && (side == Side::kServer || connection.alive);
}

void SimulatedNetwork::pump(const Shared& connection, Side side) {
  if (!listens(*connection, side)) return;
  End& end = connection->end(side);
  while (auto packet = end.session.next_packet(executor_.now()))
    transmit(connection, side == Side::kServer ? Side::kClient : Side::kServer, std::move(*packet));
  const std::optional<Time> deadline = end.session.next_deadline();
  if (!deadline || (end.deadline && *end.deadline <= *deadline)) return;
  end.deadline = deadline;
  executor_.at(*deadline, [this, connection, side] {
    connection->end(side).deadline.reset();
    pump(connection, side);
  });
}

void SimulatedNetwork::transmit(const Shared& connection, Side to, std::string packet) {
  ++packets_sent_;
  if (happens(conditions_.lost)) return;
  const int copies = happens(conditions_.repeated) ? 2 : 1;
  for (int i = 0; i < copies; ++i) {
    Time when = executor_.now() + draw(conditions_.delay_min, conditions_.delay_max);
    Time& last = connection->end(to).last_arrival;
    if (!conditions_.overtaken) when = std::max(when, last);
    last = std::max(when, last);
    executor_.at(when, [this, connection, to, packet] { arrive(connection, to, packet); });
  }
}

void SimulatedNetwork::arrive(const Shared& connection, Side side, const std::string& packet) {
  if (!listens(*connection, side)) return;
  End& end = connection->end(side);
  std::vector<std::string> delivered;
  std::optional<std::string> answer;
  const auto received = end.session.receive(packet, executor_.now(), delivered, answer);
  CHECK(received == link::Received::kAccepted);
  for (std::string& frame : delivered) end.delivered.push_back(std::move(frame));
  if (!end.offering) offer(connection, side);
  pump(connection, side);
}

void SimulatedNetwork::offer(const Shared& connection, Side side) {
  End& end = connection->end(side);
  const auto& callbacks = side == Side::kServer ? server_ : connection->callbacks;
  while (!end.delivered.empty() && listens(*connection, side)) {
    if (callbacks.on_parcel(connection->peer, end.delivered.front()) == Offer::kLater) {
      end.offering = true;
      executor_.at(executor_.now() + kOfferAgainAfter, [this, connection, side] {
        connection->end(side).offering = false;
        offer(connection, side);
        pump(connection, side);
      });
      return;
    }
    end.delivered.pop_front();
    end.session.release(1, executor_.now());
  }
}

}  // namespace tandem::controller
