// Stands between a peer of this machine and the server of a star: the peer dials a socket of this
// process, which passes the frames of both sides on over a link of its own. The peer sees a server
// come and go as the real one does, and has none of the addresses and keys by which that is
// reached.
//
//   RY-1  The peer is let in under the one name and incarnation that it was given, and speaks to
//         the server as that peer alone.
//   RY-2  The server hears of the peer's work what the peer tells, as if the peer had dialled it;
//         and while the peer has no link or has told nothing yet, that it is in phase "connect".
//
// Threading: server_up(), server_down(), pass() and progress() on the thread of the link to the
// server, whose callbacks they are; to_peer() from any thread. The thread of the peer's link is the
// relay's own.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "runtime/link/asks.h"
#include "runtime/link/link.h"

namespace tandem::link {

class Relay {
 public:
  // `at` is a Unix socket in a folder that nobody else can enter: whoever sees it may dial it.
  Relay(Endpoint at, ActorId peer, ParcelSender to_server);
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  // The server is up, with this introduction. Errors: the place cannot be listened at.
  Result<void> server_up(const Hello& server);
  void server_down();
  // A frame of the server's. It waits in the link to the server while the peer has not come.
  Offer pass(const std::string& frame);
  // For the heartbeats to the server (RY-2).
  ProgressReport progress(Time now);
  // A way to the peer for this process itself.
  ParcelSender to_peer();

 private:
  Sent send(std::string frame);

  const Endpoint at_;
  const ActorId peer_;
  const ParcelSender to_server_;
  IoThread io_{"relay"};
  std::mutex mutex_;
  std::unique_ptr<LinkServer> server_;  // guarded by mutex_; null: the real one is not up
  // The absences of the peer, which is away until it has told of its progress. Used on the thread
  // of the link to the server.
  bool away_ = false;
  std::uint64_t absences_ = 0;
  Time away_since_{};
  Stillness absence_{[] { return Duration{}; }};  // the peer's own waits are unknown here
};

}  // namespace tandem::link
