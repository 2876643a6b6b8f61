// How frames move and how peers are judged, the same for both ends of a link.
//
// Sending: send() puts the frame into the peer's session. A lone frame is written there and then:
// waking the IoThread for it would take longer than all the rest of send(). Else send() marks the
// peer as dirty and wakes the IoThread once for many frames; the socket then calls flush_dirty(),
// and each session builds packets until its window is full. Receiving: the session unpacks and
// orders frames into the inbox, and offer() hands them to the user until one is left for later.
// Only frames that the user took are released, so credit follows the user's pace.
//
// A peer is lost when it is silent too long or cannot be written to for too long. Both are measured
// only over time in which this process itself was awake (begin_tick).
#include "runtime/link/link_traffic.h"

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/wire/codec.h"

namespace tandem::link {
namespace {

// More messages than any window allows: a full socket queue then means that there is no connection.
constexpr int kQueueMessages = 20'000;
// A peer that was heard so shortly before its connection ended has ended it: several heartbeats.
constexpr Duration kHeardBeforeEnd = std::chrono::seconds(1);

// libzmq gives up a connection over which it hears nothing, as when the network is cut. A process
// that ends is heard until then. Called with the mutex held.
bool ended_in_silence(const LinkPeer& peer) {
  return peer.patience > Duration::zero() &&
         (peer.silent || *peer.unreachable_since - peer.last_heard > kHeardBeforeEnd);
}

}  // namespace

const char* name(Down::Reason reason) {
  switch (reason) {
    case Down::Reason::kClosed:
      return "closed";
    case Down::Reason::kDisconnected:
      return "disconnected";
    case Down::Reason::kSilent:
      return "silent";
    case Down::Reason::kSuperseded:
      return "superseded";
    case Down::Reason::kFenced:
      return "fenced";
    case Down::Reason::kRefused:
      return "refused";
  }
  return "?";
}

LinkTraffic::LinkTraffic(IoThread& thread, LinkOptions o, LinkCallbacks c)
    : io(thread), options(std::move(o)), callbacks(std::move(c)) {
  CHECK(callbacks.on_parcel && callbacks.on_up && callbacks.on_down);
}

ZmqOptions LinkTraffic::socket_options() const {
  return {.message_bytes_max =
              options.session.frame_bytes_max + options.session.packet_bytes_max + kControlBytesMax,
          .queue_messages = kQueueMessages,
          .redial_min = options.redial_min,
          .redial_max = options.redial_max};
}

Sent LinkTraffic::send(const std::shared_ptr<LinkPeer>& peer, std::string frame,
                       std::unique_lock<std::mutex> lock, std::function<void()> pump) {
  const Sent sent = peer->session.send(std::move(frame));
  if (sent != Sent::kAccepted) return sent;
  if (!io.on_this_thread() && write_at_once(*peer, lock)) return sent;
  if (!std::exchange(peer->dirty, true)) dirty_.push_back(peer);
  // A call from within a callback of the socket's own loop needs no post: the loop calls
  // flush_dirty() before it waits.
  if (io.on_this_thread() && socket && socket->pumping()) return sent;
  // One posted pump serves all frames until it runs; woken() then asks for the next one.
  if (!std::exchange(wake_posted_, true)) {
    lock.unlock();
    io.post(std::move(pump));
  }
  return sent;
}

bool LinkTraffic::write_at_once(LinkPeer& peer, std::unique_lock<std::mutex>& lock) {
  // A pump that is on its way takes this frame along, with those that follow.
  if (wake_posted_ || !peer.session.lone_frame() || held_back(peer) || peer.unreachable_since)
    return false;
  // Whoever is writing may not come to this frame any more: then the IoThread is woken for it.
  std::unique_lock order(writing, std::try_to_lock);
  if (!order || peer.packet) return false;
  const Time now = steady_now();
  peer.packet = peer.session.next_packet(now);
  if (!peer.packet) return false;
  lock.unlock();
  const Wrote result = write(peer, *peer.packet, now);
  if (result != Wrote::kBusy) peer.packet.reset();
  order.unlock();
  if (result == Wrote::kSent) return true;
  lock.lock();
  return false;
}

// A callback that runs meanwhile may have something to send, such as an answer that was given while
// its question was still being delivered. So frames are refused from the IoThread's next turn on.
bool LinkTraffic::close(std::function<void()> begin) {
  CHECK(!io.on_this_thread());
  {
    const std::lock_guard lock(mutex);
    if (std::exchange(close_asked_, true)) return true;
  }
  io.post([this, begin = std::move(begin)] {
    {
      const std::lock_guard lock(mutex);
      closing = true;
    }
    begin();
  });
  return closed.get_future().get();
}

void LinkTraffic::woken() {
  const std::lock_guard lock(mutex);
  wake_posted_ = false;
}

bool LinkTraffic::flush_dirty(Time now) {
  // The peers are taken out first: flushing a peer without the mutex may mark it as dirty again.
  std::vector<std::shared_ptr<LinkPeer>> peers;
  {
    const std::lock_guard lock(mutex);
    peers.swap(dirty_);
    for (const auto& peer : peers) peer->dirty = false;
  }
  bool wrote = false;
  for (const auto& peer : peers) wrote |= flush(*peer, now);
  return wrote;
}

bool LinkTraffic::flush(LinkPeer& peer, Time now) {
  bool wrote = false;
  const std::lock_guard order(writing);
  while (!peer.gone && !held_back(peer)) {
    if (!peer.packet) {
      const std::lock_guard lock(mutex);
      peer.packet = peer.session.next_packet(now);
    }
    if (!peer.packet) return wrote;
    const Wrote result = write(peer, *peer.packet, now);
    if (result == Wrote::kBusy) return wrote;  // kept; the next tick tries again
    peer.packet.reset();
    if (result == Wrote::kUnreachable) return wrote;  // lost; the session sends it again
    wrote = true;
  }
  return wrote;
}

// A write that fails means that the peer is disconnected; libzmq dials again by itself. After the
// gap the session sends again whatever the old connection may have lost.
Wrote LinkTraffic::write(LinkPeer& peer, std::string_view packet, Time now) {
  const Wrote result = socket->write(peer.route, packet);
  const std::lock_guard lock(mutex);
  if (result != Wrote::kSent) {
    if (!peer.unreachable_since) peer.unreachable_since = now;
  } else if (std::exchange(peer.unreachable_since, std::nullopt)) {
    peer.session.reconnected();
    peer.goes_on = true;
  }
  return result;
}

void LinkTraffic::heard(LinkPeer& peer, Time now) {
  bool was_silent = false;
  {
    const std::lock_guard lock(mutex);
    peer.last_heard = now;
    was_silent = std::exchange(peer.silent, false);
    // A hang is not told from a cut network: progress counts anew.
    if (was_silent) peer.progress_changed = now;
    if (std::exchange(peer.unreachable_since, std::nullopt) || was_silent)
      peer.session.reconnected();
    if (was_silent) peer.goes_on = true;
  }
  if (!was_silent) return;
  if (callbacks.on_silence) callbacks.on_silence(peer.id, false);
}

Received LinkTraffic::receive(const std::shared_ptr<LinkPeer>& peer, std::string_view packet,
                              Time now) {
  heard(*peer, now);
  std::vector<std::string> delivered;
  std::optional<std::string> answer;
  Received received;
  {
    const std::lock_guard lock(mutex);
    received = peer->session.receive(packet, now, delivered, answer);
    if (received == Received::kStale) ++counters.packets_stale;
    if (received == Received::kMalformed) ++counters.packets_malformed;
    // Even a packet without frames may have opened the window, or asked for an answer.
    if (!std::exchange(peer->dirty, true)) dirty_.push_back(peer);
  }
  // A fence for a sender with an older key; it does not belong to this session.
  if (answer) write(*peer, *answer, now);
  for (std::string& frame : delivered) peer->inbox.push_back(std::move(frame));
  offer(*peer, now);
  return received;
}

void LinkTraffic::offer(LinkPeer& peer, Time now) {
  std::uint32_t taken = 0;
  while (!peer.gone && !peer.refused && !peer.inbox.empty()) {
    const Offer offer = callbacks.on_parcel(peer.id, peer.inbox.front());
    if (offer == Offer::kLater) break;
    peer.refused = offer == Offer::kRefused;  // LK-4
    peer.inbox.pop_front();
    ++taken;
  }
  if (taken == 0) return;
  const std::lock_guard lock(mutex);
  peer.session.release(taken, now);
}

void LinkTraffic::take_heartbeat(LinkPeer& peer, std::string_view body, Time now) {
  heard(peer, now);
  auto beat = wire::decode<Heartbeat>(body, {.message_bytes_max = kControlBytesMax});
  const std::lock_guard lock(mutex);
  if (!beat || !is_phase(beat->phase)) {
    ++counters.packets_malformed;
    return;
  }
  // The clamp keeps a peer's number from making times before the clock's zero or in the future.
  const auto past = [now](Duration told) {
    return std::clamp(told, Duration{0}, Duration{now.ns});
  };
  const Duration in_phase = past(beat->in_phase);
  if (beat->counter != peer.progress.counter) peer.progress_changed = now;
  peer.progress = {.counter = beat->counter,
                   .phase = std::move(beat->phase),
                   .since = Time{now.ns - in_phase.count()},
                   .pieces = beat->pieces,
                   .longest = past(beat->longest),
                   .still = past(beat->still)};
}

void LinkTraffic::beat(LinkPeer& peer, Time now) {
  Heartbeat beat;
  if (options.progress) {
    ProgressReport report = options.progress();
    beat = {.counter = report.counter,
            .phase = std::move(report.phase),
            .in_phase = now - report.since,
            .pieces = report.pieces,
            .longest = report.longest,
            .still = report.still};
  }
  write(peer, packet_of(PacketKind::kHeartbeat, wire::encode(beat)), now);
  peer.beat_at = now + options.heartbeat_interval;
}

Duration LinkTraffic::silence_max(const LinkPeer& peer) const {
  const bool remote = remote_server || peer.hello.remote;
  return remote ? options.remote_peer_timeout : options.peer_timeout;
}

Duration LinkTraffic::grace(const LinkPeer& peer) const {
  const bool remote = remote_server || peer.hello.remote;
  return remote ? options.remote_disconnect_grace : options.disconnect_grace;
}

void LinkTraffic::begin_tick(Time now) {
  if (now - ticked_ > kStall) judged_from_ = now;
  ticked_ = now;
  socket->pump();
}

// A process that was stalled for long, or whose host was, hears what has come meanwhile before the
// end of its patience is judged.
std::optional<Down::Reason> LinkTraffic::judge_silence(LinkPeer& peer, Time now) {
  bool told = true;
  {
    const std::lock_guard lock(mutex);
    if (now - std::max(peer.last_heard, judged_from_) <= silence_max(peer)) return std::nullopt;
    // A peer that has ended its connection is no silent one: tick() judges it.
    if (peer.unreachable_since && peer.patience > Duration::zero() && !ended_in_silence(peer))
      return std::nullopt;
    if (now - peer.last_heard > peer.patience) return Down::Reason::kSilent;
    told = std::exchange(peer.silent, true);
  }
  if (!told && callbacks.on_silence) callbacks.on_silence(peer.id, true);
  return std::nullopt;
}

std::optional<Down::Reason> LinkTraffic::tick(LinkPeer& peer, Time now) {
  if (now >= peer.beat_at && !held_back(peer)) beat(peer, now);
  offer(peer, now);
  if (const auto reason = judge_silence(peer, now)) return reason;
  bool due = false;
  {
    // A packet that the socket did not take is tried again at each tick.
    const std::lock_guard order(writing);
    due = peer.packet.has_value();
  }
  {
    const std::lock_guard lock(mutex);
    const std::optional<Time> deadline = peer.session.next_deadline();
    due = std::exchange(peer.goes_on, false) || due || (deadline && *deadline <= now);
  }
  if (due) flush(peer, now);
  const std::lock_guard lock(mutex);
  if (peer.unreachable_since && !ended_in_silence(peer) &&
      now - std::max(*peer.unreachable_since, judged_from_) > grace(peer)) {
    return Down::Reason::kDisconnected;
  }
  return std::nullopt;
}

Down LinkTraffic::down(LinkPeer& peer, Down::Reason reason) const {
  peer.gone = true;
  const std::lock_guard lock(mutex);
  const auto text = [&]() -> std::string {
    switch (reason) {
      case Down::Reason::kClosed:
        return " closed its link";
      case Down::Reason::kDisconnected:
        return " lost its connection and did not come back within " +
               std::to_string(seconds(grace(peer))) + " s";
      case Down::Reason::kSilent:
        return " was not heard of for " +
               std::to_string(seconds(std::max(silence_max(peer), peer.patience))) + " s";
      case Down::Reason::kSuperseded:
        return " gave way to a newer incarnation";
      case Down::Reason::kFenced:
        return " was fenced: this incarnation of it is over";
      case Down::Reason::kRefused:
        return " was refused";
    }
    return "";
  }();
  return {.reason = reason,
          .frames_unsent = peer.session.frames_queued(),
          .error = {ErrorCode::kUnreachable, to_string(peer.id) + text}};
}

PeerStatus LinkTraffic::status(const LinkPeer& peer) const {
  return {.peer = peer.id,
          .hello = peer.hello,
          .last_heard = peer.last_heard,
          .silent = peer.silent,
          .progress = peer.progress,
          .progress_changed = peer.progress_changed,
          .session = peer.session.counters()};
}

}  // namespace tandem::link
