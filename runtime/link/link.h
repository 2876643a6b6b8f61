// Links between processes: a star of clients (agents, ranks) around one server (the controller).
// Frames sent on a link arrive in order and once while both incarnations last (session.h). A link
// adds dialling, introduction, heartbeats with progress, and the news that a peer came or went.
//
// Not responsible for: what a frame means (the actor layer's parcels), large payloads (bulk.h).
//
// ROUTER and DEALER over Unix sockets, or over TCP with CURVE (curve.h). The routing id is
// "name#incarnation~nonce": the nonce is random, so that no other socket can take the id over.
// The thread that sends a frame writes it itself while no other frame to the peer is under way, and
// so saves waking the IoThread; that thread writes the others, and frames queued at the same time
// travel in one ZeroMQ message. Both sides send something every heartbeat_interval, so a silent
// peer is a lost one; the progress that a heartbeat carries tells a hung actor from a busy one.
//
// Threading: send(), fence(), peers() and close() from any thread; callbacks come on the
// IoThread, in order, never before start() nor after close() returned, and must not block or call
// close(). A callback may use the link itself: its maker assigns the link to its place first and
// starts it then.
//
// A peer by TCP that is silent may be cut off by a network, with its work under way. Where the
// server gives a grace, its session lasts: frames wait, and go on once it is heard again.
//
// Invariants:
//   LK-1  on_up and on_down alternate per peer, and every parcel comes between the two.
//   LK-2  at most one incarnation of a name is up; an older one is refused, counted and fenced.
//         Another socket that says to be the one that is up is refused, and disturbs nothing.
//   LK-3  a frame that send() accepted is delivered, or its peer's on_down counts it as unsent.
//   LK-4  after a frame of a peer was refused, no further frame of that peer is offered; its
//         on_down says kFenced.
//   LK-5  where the server gives a grace, a client by TCP that is cut off goes down on its own side
//         before it does on the server's: a server sends nothing to a silent client, so that each
//         side is silent for the other, and waits longer by kGraceMargin.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/ids.h"
#include "runtime/base/result.h"
#include "runtime/link/curve.h"
#include "runtime/link/io_thread.h"
#include "runtime/link/program_build.h"
#include "runtime/link/progress.h"
#include "runtime/link/session.h"
#include "runtime/wire/fields.h"

namespace tandem::link {

// How a peer introduces itself. A server's incarnation is the epoch of its controller.
struct Hello {
  std::string name;
  Incarnation incarnation;
  std::int32_t rank = 0;      // the process's rank in its actor
  std::int64_t pid = 0;       // 0: this process
  std::string build;          // the build of the wire format: both sides must have the same
  std::string opaque;         // for the layer above, at most kHelloOpaqueBytesMax
  bool remote = false;        // the client dials by TCP, as it says itself
  Duration grace{};           // a server's LinkOptions::remote_grace
  ProgramBuild program = {};  // PB-1
};
TANDEM_WIRE(Hello, name, incarnation, rank, pid, build, opaque, remote, grace, program)
inline constexpr std::size_t kHelloOpaqueBytesMax = 64 << 10;

// Why a peer is no longer up, and what is lost with it.
struct Down {
  enum class Reason {
    kClosed,        // the peer said good-bye
    kDisconnected,  // its connection ended and did not come back within disconnect_grace
    kSilent,        // nothing was heard of it for peer_timeout, or by TCP until its grace was over
    kSuperseded,    // a newer incarnation (of the client) or epoch (of the server) took its place
    kFenced,        // server: fence() was called; client: the server fenced it, never dial again
    kRefused,       // client only: the introduction was refused for good, see `error`
  };
  Reason reason = Reason::kClosed;
  std::size_t frames_unsent = 0;  // accepted by send() and not known to have been taken (LK-3)
  Error error;                    // the same as text, for logs and users
};
const char* name(Down::Reason reason);  // "closed", "disconnected", …

// The answer of on_parcel to a frame.
enum class Offer {
  kTaken,
  kLater,    // no room: the frame must be left as it was, and is offered again before any other of
             // this peer; meanwhile the peer's credit runs out
  kRefused,  // this peer may not send this: a server fences it (LK-4); a client never answers so
};

// The first three are required (CHECKed).
struct LinkCallbacks {
  // A frame for the layer above, in order. It may be moved from where the answer is kTaken.
  std::function<Offer(const ActorId&, std::string& frame)> on_parcel;
  std::function<void(const ActorId&, const Hello&)> on_up;
  std::function<void(const ActorId&, const Down&)>
      on_down;  // client: kRefused may come before any up
  // Server: whether this peer is let in at all; the Error refuses it for good. Asked before an
  // earlier incarnation is taken down for it. Empty: every peer is let in.
  std::function<Result<void>(const Hello&)> admit = {};
  // A peer by TCP has not been heard for remote_peer_timeout, and keeps its session (LK-5); or it
  // is heard again. Between on_up and on_down. Empty: nobody is told.
  std::function<void(const ActorId&, bool silent)> on_silence = {};
};

// Some twenty heartbeats each: within five seconds it is known that a node is cut off, by TCP, or
// that an agent beside the controller hangs.
inline constexpr Duration kPeerTimeout = std::chrono::milliseconds(4500);
inline constexpr Duration kRemotePeerTimeout = std::chrono::seconds(4);
struct LinkOptions {
  // Limits of each peer's session. Both ends should have the same: until the peer has sent a grant,
  // its window is taken to be this end's own.
  SessionLimits session;
  Duration heartbeat_interval = std::chrono::milliseconds(200);
  Duration peer_timeout = kPeerTimeout;
  Duration disconnect_grace = std::chrono::seconds(1);
  // The same two limits for peers by TCP. Where there is a grace (remote_grace), silence ends
  // nothing, and so may be told soon. The end of a connection ends the session: a network that is
  // cut for some seconds must not, and when the cut ends, TCP may wait once more for as long before
  // it tries again, or a new connection is dialled.
  Duration remote_peer_timeout = kRemotePeerTimeout;
  Duration remote_disconnect_grace = std::chrono::seconds(5);
  // A server: for how long a silent peer by TCP keeps its session and its work, since it was heard
  // last. Zero: silence ends it. Clients hear of it by the server's Hello.
  Duration remote_grace{};
  Duration redial_min = std::chrono::milliseconds(50);  // doubles up to redial_max, with jitter
  Duration redial_max = std::chrono::seconds(2);
  // How many peers a server has at most; one more gets no answer and goes on trying.
  std::size_t peers_max = 4096;
  std::function<ProgressReport()> progress;  // called on the IoThread; empty: no progress is told
};

// By so much the server's grace for a silent client is longer than the client's own: for the time
// until the server takes a client for silent that still hears it, and until processes have ended.
inline constexpr Duration kGraceMargin = std::chrono::seconds(30);

// A peer that is up, as of the moment of the question.
struct PeerStatus {
  ActorId peer;
  Hello hello;
  Time last_heard;          // when the last packet of any kind came
  bool silent = false;      // as on_silence said last
  ProgressReport progress;  // from the peer's last heartbeat, with `since` on this process's clock
  Time progress_changed;    // when its counter last moved
  SessionCounters session;
};

// Counts since the link was made.
struct LinkCounters {
  std::uint64_t hellos_refused = 0;  // other build, older incarnation, not admitted, too many peers
  // Packets of an older incarnation: refused and answered with a fence.
  std::uint64_t packets_stale = 0;
  std::uint64_t packets_malformed = 0;
};

// The controller's end of all links. `io` outlives it.
class LinkServer {
 public:
  // Listens at all of `at` (port 0: any). `self.incarnation` is the epoch. Errors: a place is
  // taken; TCP without keys.
  static Result<std::unique_ptr<LinkServer>> listen(IoThread& io, const std::vector<Binding>& at,
                                                    Hello self, LinkOptions options,
                                                    LinkCallbacks callbacks);
  ~LinkServer();  // close() with no time to flush; not on the IoThread
  void start();   // lets peers in; once

  const std::vector<Endpoint>& endpoints() const;  // in the order of `at`
  const Endpoint& endpoint() const { return endpoints().front(); }
  // Sends to one incarnation: kGone if another one of that name, or none, is up. It never blocks.
  Sent send(const ActorId& peer, std::string frame);
  // Ends this incarnation of the peer for good: it is told not to come back, and refused if it
  // does.
  void fence(const ActorId& peer);
  std::vector<PeerStatus> peers() const;
  std::optional<PeerStatus> status(const ActorId& peer) const;
  LinkCounters counters() const;
  // Sends for at most `flush_within` until the peers have taken all accepted frames, says good-bye,
  // waits up to half a second for the peers' own, unless `flush_within` is zero, and closes. False:
  // the time ran out first. Callbacks may still come during that time; the closing
  // itself causes no on_down. Frames of a callback that is running are still accepted. The IoThread
  // must not call it (CHECKed); only the first call does anything.
  bool close(Duration flush_within);
  // Closes as if this process had died: the peers hear no good-bye, and look for another server at
  // the same place. As close() else.
  void abandon();

 private:
  struct State;
  explicit LinkServer(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

// The end of an agent or a rank. `io` outlives it.
class LinkClient {
 public:
  // `self.incarnation` must be greater than every earlier one of this name. CHECKed: the name and
  // the opaque bytes are within their limits.
  LinkClient(IoThread& io, Dial server, Hello self, LinkOptions options, LinkCallbacks callbacks);
  ~LinkClient();  // close() with no time to flush
  void start();   // dials until closed, refused or fenced; once

  Sent send(std::string frame);              // kGone while the server is down
  std::optional<PeerStatus> server() const;  // nothing while it is down
  bool close(Duration flush_within);         // as LinkServer::close

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tandem::link
