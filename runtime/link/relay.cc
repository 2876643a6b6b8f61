#include "runtime/link/relay.h"

#include <sys/stat.h>

#include <optional>
#include <utility>

namespace tandem::link {

Relay::Relay(Endpoint at, ActorId peer, ParcelSender to_server)
    : at_(std::move(at)), peer_(std::move(peer)), to_server_(std::move(to_server)) {
  CHECK(at_.is_local());
}

Relay::~Relay() = default;  // the peer hears a good-bye

Result<void> Relay::server_up(const Hello& server) {
  LinkCallbacks callbacks;
  callbacks.on_parcel = [this](const ActorId&, std::string& frame) {
    // A frame that finds no server is lost with it, as from the server's own peers.
    return to_server_(frame) == Sent::kFull ? Offer::kLater : Offer::kTaken;
  };
  callbacks.on_up = [](const ActorId&, const Hello&) {};
  callbacks.on_down = [](const ActorId&, const Down&) {};
  callbacks.admit = [this](const Hello& hello) -> Result<void> {
    if (hello.name == peer_.name && hello.incarnation == peer_.incarnation) return {};
    return Error{ErrorCode::kInvalid, "only " + to_string(peer_) + " may come in here"};
  };
  Hello self = server;
  self.pid = 0;
  auto made = LinkServer::listen(io_, {{at_, std::nullopt}}, std::move(self), {}, callbacks);
  if (!made) return made.error();
  chmod(at_.path.c_str(), 0666);  // the peer may be another user; the folder keeps others out
  (*made)->start();
  away_ = false;  // the peer is given time anew
  const std::lock_guard lock(mutex_);
  server_ = *std::move(made);
  return {};
}

void Relay::server_down() {
  std::unique_ptr<LinkServer> gone;
  {
    const std::lock_guard lock(mutex_);
    gone = std::move(server_);
  }
  if (gone) gone->abandon();
}

Sent Relay::send(std::string frame) {
  const std::lock_guard lock(mutex_);
  return server_ ? server_->send(peer_, std::move(frame)) : Sent::kGone;
}

Offer Relay::pass(const std::string& frame) {
  const Sent sent = send(frame);
  return sent == Sent::kFull || sent == Sent::kGone ? Offer::kLater : Offer::kTaken;
}

// A peer that has just come in has an empty phase until its first heartbeat.
ProgressReport Relay::progress(Time now) {
  std::optional<PeerStatus> here;
  {
    const std::lock_guard lock(mutex_);
    if (server_) here = server_->status(peer_);
  }
  if (here && !here->progress.phase.empty()) {
    away_ = false;
    return std::move(here->progress);
  }
  if (!std::exchange(away_, true)) {
    ++absences_;
    away_since_ = now;
  }
  return absence_.look({.counter = absences_, .phase = "connect", .since = away_since_}, now);
}

ParcelSender Relay::to_peer() {
  return [this](std::string frame) { return send(std::move(frame)); };
}

}  // namespace tandem::link
