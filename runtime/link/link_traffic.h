// The part that both ends of a link have in common: moving the frames of their peers' sessions over
// one socket, heartbeats, and the judgement that a peer is gone. Who may be a peer is decided by
// link_server.cc and link_client.cc. Internal to runtime/link.
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

#include "runtime/link/link.h"
#include "runtime/link/packet.h"
#include "runtime/link/ticker.h"
#include "runtime/link/zmq_socket.h"

namespace tandem::link {

// The bodies of the packets that do not belong to a session (packet.h).
// Body of a kHello. `attempt` numbers the introductions of one client; each begins a new session.
struct Introduction {
  Hello hello;
  std::uint64_t attempt = 0;
};
TANDEM_WIRE(Introduction, hello, attempt)

struct Welcome {
  Hello hello;
  std::uint64_t attempt = 0;  // the number of the introduction that it answers
};
TANDEM_WIRE(Welcome, hello, attempt)

// Body of a kRefusal: why this client is not let in.
struct Refusal {
  Error error;
};

// Body of a kHeartbeat: a ProgressReport with the time spent in the phase in place of its
// beginning, because the two processes' clocks differ.
struct Heartbeat {
  std::uint64_t counter = 0;
  std::string phase;
  Duration in_phase{};
  std::uint64_t pieces = 0;
  Duration longest{};
  Duration still{};
};
TANDEM_WIRE(Heartbeat, counter, phase, in_phase, pieces, longest, still)

TANDEM_WIRE(Refusal, error)

inline constexpr std::uint64_t kControlBytesMax = 128 << 10;  // per packet outside sessions
inline constexpr std::size_t kPeerNameBytesMax = 200;         // libzmq's routing ids end at 255

// One peer that is up, with its session. A peer that went and came back is another LinkPeer.
struct LinkPeer {
  LinkPeer(std::string from, Hello introduced, SessionKey key, const SessionLimits& limits,
           Time now)
      : id{introduced.name, introduced.incarnation},
        route(std::move(from)),
        hello(std::move(introduced)),
        patience(hello.grace),
        session(key, limits),
        last_heard(now),
        progress_changed(now) {}

  const ActorId id;
  const std::string route;  // its socket's routing id; empty: the server of a client
  const Hello hello;
  Duration patience;  // since it was heard last, by which a silent one is down; zero: at once

  // Guarded by the link's mutex.
  // Frames and packets of this peer in both directions; the mutex makes send() possible on any
  // thread.
  Session session;
  bool dirty = false;    // in LinkTraffic::dirty_
  bool goes_on = false;  // it is reached again: what is in flight travels again at the next tick
  // Set while writes fail; a write or a packet that gets through clears it.
  std::optional<Time> unreachable_since;
  Time last_heard;
  bool silent = false;  // it was not heard for silence_max(), and is not down (LK-5)
  // The peer's last heartbeat, and when its counter was last another one than before.
  ProgressReport progress;
  Time progress_changed;

  // Guarded by LinkTraffic::writing.
  std::optional<std::string> packet;  // built by the session, not yet taken by the socket

  // These are used only on the IoThread.
  std::deque<std::string> inbox;  // delivered by the session, not yet taken by the user
  Time beat_at{};                 // when the next heartbeat is due
  bool gone = false;              // on_down came: nothing more is written or offered
  bool refused = false;           // LK-4: the server is about to fence it
};

// Owned by the State of a LinkServer or LinkClient. `mutex` guards the sessions, the counters and
// the owner's table of peers. It is never held during a callback or a write to the socket, since a
// callback may call send(). `writing` is held from the making of a session's packet until the
// socket has it, so that packets travel in the order in which they were made. It is locked before
// `mutex`, or tried.
class LinkTraffic {
 public:
  LinkTraffic(IoThread& io, LinkOptions options, LinkCallbacks callbacks);

  // Options of a socket that takes the largest packet of a session.
  ZmqOptions socket_options() const;
  // How long a peer may be silent before it counts as silent, and how long without a connection
  // before it counts as lost.
  Duration silence_max(const LinkPeer& peer) const;
  Duration grace(const LinkPeer& peer) const;

  // Any thread may call, with `lock` held on mutex; the call may release it. The calling
  // thread writes the frame itself while no other frame to the peer is under way, which saves
  // waking the IoThread. Any other frame is left to that thread, which gathers many into one
  // packet: `pump` is posted to it if it may be asleep.
  Sent send(const std::shared_ptr<LinkPeer>& peer, std::string frame,
            std::unique_lock<std::mutex> lock, std::function<void()> pump);

  // Any thread but the IoThread may call. Posts `begin` there and waits until `begin`, or a later
  // tick, sets `closed`. Only the first call does anything.
  bool close(std::function<void()> begin);

  // All other functions are called on the IoThread, without the mutex.
  void woken();                          // the posted `pump` runs: the next send() posts another
  bool flush_dirty(Time now);            // all peers that may have something to send
  bool flush(LinkPeer& peer, Time now);  // whether the socket took anything
  // Takes a packet of the peer's session, and offers the frames that it delivers. kFenced: the
  // session is over, and the caller takes the peer down.
  Received receive(const std::shared_ptr<LinkPeer>& peer, std::string_view packet, Time now);
  // Notes the peer's progress. A body that does not decode is counted and has no other effect.
  void take_heartbeat(LinkPeer& peer, std::string_view body, Time now);
  // Called once per tick, before tick() of the peers. A tick that comes late shows that this
  // process was stalled: peers are not to blame for what it did not hear meanwhile, and silence
  // counts anew.
  void begin_tick(Time now);
  // Timers of one peer: resends, heartbeats, parcels that were left for later. A reason: the peer
  // is gone, and the caller takes it down.
  std::optional<Down::Reason> tick(LinkPeer& peer, Time now);
  // Any packet shows that the peer runs and that its connection stands.
  void heard(LinkPeer& peer, Time now);
  Down down(LinkPeer& peer, Down::Reason reason) const;  // marks it as gone; for on_down

  // A snapshot for users of the link.
  PeerStatus status(const LinkPeer& peer) const;  // mutex held

  IoThread& io;
  const LinkOptions options;
  const LinkCallbacks callbacks;
  bool remote_server = false;  // set in a client that dials by TCP
  std::mutex writing;
  // Changed on the IoThread under `writing`; read there freely, on other threads under `writing`.
  std::unique_ptr<ZmqSocket> socket;
  mutable std::mutex mutex;
  LinkCounters counters;      // guarded by mutex
  bool closing = false;       // guarded by mutex; send() answers kGone
  std::promise<bool> closed;  // whether all was flushed; set once, on the IoThread

 private:
  // Writes a frame that send() has just put into the session, if nothing else is under way. False:
  // the frame waits in the session, and `lock` is held.
  bool write_at_once(LinkPeer& peer, std::unique_lock<std::mutex>& lock);
  // Delivers the frames of the inbox to the user in order, up to the first one that is left for
  // later (or LK-4).
  void offer(LinkPeer& peer, Time now);
  // Sends a heartbeat with this process's own progress.
  void beat(LinkPeer& peer, Time now);
  // Whether nothing may be written to it (LK-5).
  bool held_back(const LinkPeer& peer) const { return peer.silent && !peer.route.empty(); }
  // Judges by when the peer was heard last. A reason: it is gone.
  std::optional<Down::Reason> judge_silence(LinkPeer& peer, Time now);
  // Writes one packet, and notes from the outcome whether the peer is connected.
  Wrote write(LinkPeer& peer, std::string_view packet, Time now);

  // begin_tick() keeps both: when the last tick was, and since when this process has been awake.
  Time ticked_;                                   // only on the IoThread, as is
  Time judged_from_;                              // silence counts from here at the earliest
  std::vector<std::shared_ptr<LinkPeer>> dirty_;  // guarded by mutex
  bool wake_posted_ = false;                      // guarded by mutex; a pump is on its way
  bool close_asked_ = false;                      // guarded by mutex
};

inline constexpr Duration kLinkTick = std::chrono::milliseconds(20);
inline constexpr Duration kStall = 10 * kLinkTick;  // a longer pause between ticks is a stall
// How long a closed socket may take to write its last words.
inline constexpr Duration kByeLinger = std::chrono::milliseconds(100);
// How long a server waits for the answers to its good-bye. Where it closes a connection on which a
// client still sends, the client's system may drop the good-bye unread.
inline constexpr Duration kByeAnswered = std::chrono::milliseconds(500);

}  // namespace tandem::link
