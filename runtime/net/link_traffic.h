// What the two ends of a link share: moving the sessions of their peers over one socket,
// heartbeats, and the judgement that a peer is gone. Who may be a peer is decided by link_server.cc
// and link_client.cc.
#pragma once

#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/net/link.h"
#include "runtime/net/packet.h"
#include "runtime/net/ticker.h"
#include "runtime/net/zmq_socket.h"

namespace tandem::runtime {

// The bodies of the packets that are not a session's (packet.h).
struct Introduction {
  Hello hello;
  std::uint64_t attempt = 0;
};
TANDEM_WIRE(Introduction, hello, attempt)

struct Welcome {
  Hello hello;
  std::uint64_t attempt = 0;  // of the introduction that it answers
};
TANDEM_WIRE(Welcome, hello, attempt)

struct Refusal {
  Error error;
};

struct Heartbeat {
  std::uint64_t counter = 0;
  std::string phase;
  Duration in_phase{};
};
TANDEM_WIRE(Heartbeat, counter, phase, in_phase)

TANDEM_WIRE(Refusal, error)

inline constexpr std::uint64_t kControlBytesMax = 128 << 10;  // a packet that is not a session's
inline constexpr std::size_t kPeerNameBytesMax = 200;         // libzmq's routing ids end at 255

struct LinkPeer {
  LinkPeer(std::string from, Hello introduced, SessionKey key, const SessionLimits& limits,
           Time now)
      : id{introduced.name, introduced.incarnation},
        route(std::move(from)),
        hello(std::move(introduced)),
        session(key, limits),
        last_heard(now),
        progress_changed(now) {}

  const PeerId id;
  const std::string route;  // its socket's routing id; empty for a client's server
  const Hello hello;

  // Guarded by the link's mutex.
  Session session;
  bool dirty = false;  // in LinkTraffic::dirty_
  Time last_heard;
  ProgressReport progress;
  Time progress_changed;

  // Only on the IoThread.
  std::deque<std::string> inbox;      // delivered by the session, not yet taken by the user
  std::optional<std::string> packet;  // built, and not yet taken by the socket
  std::optional<Time> unreachable_since;
  Time beat_at{};
  bool gone = false;     // on_down was said: nothing more is written or offered
  bool refused = false;  // LK-4: its server fences it
};

class LinkTraffic {
 public:
  LinkTraffic(IoThread& io, LinkOptions options, LinkCallbacks callbacks);

  ZmqOptions socket_options() const;
  // After so long it is lost: when nothing is heard of it, and when nothing can be written to it.
  Duration silence_max(const LinkPeer& peer) const;
  Duration grace(const LinkPeer& peer) const;

  // Any thread, `lock` held on mutex; releases it. `pump` runs on the IoThread if it must be woken.
  Sent send(const std::shared_ptr<LinkPeer>& peer, std::string frame,
            std::unique_lock<std::mutex> lock, std::function<void()> pump);

  // Any thread but the IoThread: runs `begin` there, and waits for what it, or a later tick, gives
  // `closed`. Only the first call does anything.
  bool close(const std::function<void()>& begin);

  // All others on the IoThread, without the mutex.
  void woken();
  bool flush_dirty(Time now);
  bool flush(LinkPeer& peer, Time now);
  // What a session's packet brings; kFenced means that the peer's session is over.
  Received receive(const std::shared_ptr<LinkPeer>& peer, std::string_view packet, Time now);
  void take_heartbeat(LinkPeer& peer, std::string_view body, Time now);
  // Once per tick, before the peers: a tick that comes late says that this process was stalled, and
  // whoever it did not hear of meanwhile is not to blame.
  void begin_tick(Time now);
  // Timers of one peer: resends, heartbeats, parcels that were left for later. A reason means that
  // the peer is gone.
  std::optional<Down::Reason> tick(LinkPeer& peer, Time now);
  void heard(LinkPeer& peer, Time now);
  Down down(LinkPeer& peer, Down::Reason reason) const;  // from now on it is gone

  PeerStatus status(const LinkPeer& peer) const;  // mutex held

  IoThread& io;
  const LinkOptions options;
  const LinkCallbacks callbacks;
  bool remote_server = false;         // a client's: it dials by TCP
  std::unique_ptr<ZmqSocket> socket;  // only on the IoThread
  mutable std::mutex mutex;
  LinkCounters counters;      // guarded by mutex
  bool closing = false;       // guarded by mutex
  std::promise<bool> closed;  // whether all was flushed; set once, on the IoThread

 private:
  void offer(LinkPeer& peer, Time now);
  void beat(LinkPeer& peer, Time now);
  Wrote write(LinkPeer& peer, std::string_view packet, Time now);

  Time ticked_;                                   // only on the IoThread, as is
  Time judged_from_;                              // silence counts from here at the earliest
  std::vector<std::shared_ptr<LinkPeer>> dirty_;  // guarded by mutex
  bool wake_posted_ = false;                      // guarded by mutex
};

inline constexpr Duration kLinkTick = std::chrono::milliseconds(20);
inline constexpr Duration kStall = 10 * kLinkTick;  // between two ticks
// How long a closed socket may take to write its last words.
inline constexpr Duration kByeLinger = std::chrono::milliseconds(100);

}  // namespace tandem::runtime
