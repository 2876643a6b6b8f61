// Links between processes: a star of clients (agents, ranks) around one server (the controller).
// Frames sent on a link arrive in order and once while both lives last (session.h); a link adds
// dialling, introduction, heartbeats with progress, and the news that a peer came or went.
//
// Not responsible for: what a frame means (the actor layer's parcels), large payloads (bulk.h).
//
// ROUTER and DEALER over Unix sockets, or over TCP with CURVE (curve.h); the routing id is
// "name#incarnation~nonce": the nonce is random, so that no other socket can take it over. Frames
// queued at the same time travel in one ZeroMQ message. Both sides speak up every
// heartbeat_interval, so a silent peer is a lost one; what it says about its own progress tells a
// hung actor from a busy one.
//
// Threading: send(), fence(), peers() and close() from any thread; callbacks come on the
// IoThread, in order, never before start() nor after close() returned, and must not block or call
// close(). So a callback may use the link that its maker keeps: assign it, then start it.
//
// Invariants:
//   LK-1  on_up and on_down alternate per peer, and every parcel comes between the two.
//   LK-2  at most one incarnation of a name is up; an older one is refused, counted and fenced.
//         Another socket that says to be the one that is up is refused, and disturbs nothing.
//   LK-3  a frame that send() accepted is delivered, or its peer's on_down counts it as unsent.
//   LK-4  of a peer whose frame was refused nothing more is offered; its on_down says kFenced.
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
#include "runtime/net/curve.h"
#include "runtime/net/io_thread.h"
#include "runtime/net/progress.h"
#include "runtime/net/session.h"
#include "runtime/wire/fields.h"

namespace tandem::runtime {

struct PeerId {
  std::string name;
  Incarnation incarnation;
  auto operator<=>(const PeerId&) const = default;
};
TANDEM_WIRE(PeerId, name, incarnation)
std::string to_string(const PeerId& peer);  // "arith-1/rollout/0#3"

// How a peer introduces itself. A server's incarnation is its epoch.
struct Hello {
  std::string name;
  Incarnation incarnation;
  std::int32_t rank = 0;
  std::int64_t pid = 0;  // 0: this process
  std::string build;     // both sides must have the same
  std::string opaque;    // for the layer above, at most kHelloOpaqueBytesMax
  bool remote = false;   // it dials by TCP; the client says so itself
};
TANDEM_WIRE(Hello, name, incarnation, rank, pid, build, opaque, remote)
inline constexpr std::size_t kHelloOpaqueBytesMax = 64 << 10;

struct Down {
  enum class Reason {
    kClosed,        // it said good-bye
    kDisconnected,  // its connection ended and did not come back within disconnect_grace
    kSilent,        // nothing was heard of it for peer_timeout, or remote_peer_timeout
    kSuperseded,    // a newer incarnation (of the client) or epoch (of the server) took its place
    kFenced,        // server: fence() was called; client: the server fenced us, never dial again
    kRefused,       // client only: the introduction was refused for good, see `error`
  };
  Reason reason = Reason::kClosed;
  std::size_t frames_unsent = 0;  // accepted, and not acknowledged when it went
  Error error;                    // says all this to a person
};
const char* name(Down::Reason reason);

enum class Offer {
  kTaken,
  kLater,    // no room: the frame is left as it was and is offered again, before any other of this
             // peer, whose credit meanwhile runs out
  kRefused,  // this peer may not say that: a server fences it (LK-4); no answer for a client
};

struct LinkCallbacks {
  std::function<Offer(const PeerId&, std::string& frame)> on_parcel;
  std::function<void(const PeerId&, const Hello&)> on_up;
  std::function<void(const PeerId&, const Down&)>
      on_down;  // client: kRefused may come before any up
  // Server: whether this peer may be one at all; the Error refuses it for good. Asked before an
  // earlier incarnation gives way to it. Empty: every peer may.
  std::function<Result<void>(const Hello&)> admit = {};
};

struct LinkOptions {
  SessionLimits session;
  Duration heartbeat_interval = std::chrono::milliseconds(200);
  Duration peer_timeout = std::chrono::seconds(5);
  Duration disconnect_grace = std::chrono::seconds(1);
  // The same two of peers by TCP, whose network may be cut for some seconds. When a cut ends, TCP
  // may take as long as the cut lasted until it tries again, or a new connection is dialled.
  Duration remote_peer_timeout = std::chrono::seconds(10);
  Duration remote_disconnect_grace = std::chrono::seconds(5);
  Duration redial_min = std::chrono::milliseconds(50);  // doubles up to redial_max, with jitter
  Duration redial_max = std::chrono::seconds(2);
  std::size_t peers_max = 4096;
  std::function<ProgressReport()> progress;  // called on the IoThread; none: nothing is reported
};

struct PeerStatus {
  PeerId peer;
  Hello hello;
  Time last_heard;          // any traffic
  ProgressReport progress;  // of its last heartbeat
  Time progress_changed;    // when its counter last moved
  SessionCounters session;
};

struct LinkCounters {
  std::uint64_t hellos_refused = 0;  // other build, older incarnation, not admitted, too many peers
  std::uint64_t packets_stale = 0;   // of an older life: refused and answered with a fence
  std::uint64_t packets_malformed = 0;
};

class LinkServer {
 public:
  // Takes all the places `at` (port 0: any). `self.incarnation` is the epoch. Errors: a place is
  // taken; TCP without keys.
  static Result<std::unique_ptr<LinkServer>> listen(IoThread& io, const std::vector<Binding>& at,
                                                    Hello self, LinkOptions options,
                                                    LinkCallbacks callbacks);
  ~LinkServer();  // close() with no time to flush
  void start();   // lets peers in; once

  const std::vector<Endpoint>& endpoints() const;  // in the order of `at`
  const Endpoint& endpoint() const { return endpoints().front(); }
  Sent send(const PeerId& peer, std::string frame);
  // This life of the peer is over: it is told never to come back, and refused if it does.
  void fence(const PeerId& peer);
  std::vector<PeerStatus> peers() const;
  std::optional<PeerStatus> status(const PeerId& peer) const;
  LinkCounters counters() const;
  // Flushes what was accepted for at most `flush_within`, says good-bye, closes. False: not all
  // could be flushed. Callbacks may still come while it flushes; there is no on_down for the
  // closing.
  bool close(Duration flush_within);

 private:
  struct State;
  explicit LinkServer(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

class LinkClient {
 public:
  // `self.incarnation` must be greater than that of every earlier life of this name.
  LinkClient(IoThread& io, Dial server, Hello self, LinkOptions options, LinkCallbacks callbacks);
  ~LinkClient();  // close() with no time to flush
  void start();   // dials until closed, refused or fenced; once

  Sent send(std::string frame);              // kGone while down
  std::optional<PeerStatus> server() const;  // nothing while down
  bool close(Duration flush_within);         // as LinkServer::close

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tandem::runtime
