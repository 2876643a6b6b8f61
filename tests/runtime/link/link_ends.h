// Both ends of a link for tests: each writes down what its callbacks hear, and a test waits for it.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/check.h"
#include "runtime/link/link.h"
#include "tests/runtime/link/bindings.h"
#include "tests/runtime/patience.h"

namespace tandem::link {

inline LinkOptions quick() {
  LinkOptions options;
  options.heartbeat_interval = std::chrono::milliseconds(20);
  options.disconnect_grace = options.remote_disconnect_grace = std::chrono::milliseconds(200);
  options.peer_timeout = options.remote_peer_timeout = std::chrono::seconds(60);
  options.redial_min = std::chrono::milliseconds(10);
  options.redial_max = std::chrono::milliseconds(50);
  return options;
}

// The events of one end of a link, and a way to wait for them.
class Log {
 public:
  LinkCallbacks callbacks() {
    return {.on_parcel =
                [this](const ActorId& peer, std::string& frame) {
                  const std::lock_guard lock(mutex_);
                  if (mailbox_room_ == 0) return Offer::kLater;
                  --mailbox_room_;
                  if (!up_.contains(peer)) ADD_FAILURE() << "LK-1: a parcel of a peer that is down";
                  parcels_.push_back(std::move(frame));
                  if (on_parcel) on_parcel();
                  changed_.notify_all();
                  return Offer::kTaken;
                },
            .on_up =
                [this](const ActorId& peer, const Hello& hello) {
                  const std::lock_guard lock(mutex_);
                  EXPECT_TRUE(up_.emplace(peer, hello).second) << "LK-1";
                  ++ups_;
                  changed_.notify_all();
                },
            .on_down =
                [this](const ActorId& peer, const Down& down) {
                  const std::lock_guard lock(mutex_);
                  const bool was_up = up_.erase(peer) == 1;
                  EXPECT_TRUE(was_up || down.reason == Down::Reason::kRefused ||
                              down.reason == Down::Reason::kFenced)
                      << "LK-1";
                  downs_.push_back(down);
                  changed_.notify_all();
                },
            .on_silence =
                [this](const ActorId& peer, bool silent) {
                  const std::lock_guard lock(mutex_);
                  EXPECT_TRUE(up_.contains(peer)) << "LK-5";
                  silences_.push_back(silent);
                  changed_.notify_all();
                }};
  }
  template <class Condition>
  bool wait(Condition condition) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] { return condition(*this); });
  }
  bool wait_up(std::size_t n) {
    return wait([n](Log& log) { return log.up_.size() == n; });
  }
  bool wait_down(std::size_t n) {
    return wait([n](Log& log) { return log.downs_.size() >= n; });
  }
  bool wait_parcels(std::size_t n) {
    return wait([n](Log& log) { return log.parcels_.size() >= n; });
  }
  void set_mailbox_room(std::size_t room) {
    const std::lock_guard lock(mutex_);
    mailbox_room_ = room;
  }
  std::vector<std::string> parcels() {
    const std::lock_guard lock(mutex_);
    return parcels_;
  }
  std::vector<Down> downs() {
    const std::lock_guard lock(mutex_);
    return downs_;
  }

  std::function<void()> on_parcel;  // set before there is one
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<ActorId, Hello> up_;
  std::vector<std::string> parcels_;
  std::vector<Down> downs_;
  std::vector<bool> silences_;
  std::size_t ups_ = 0;
  std::size_t mailbox_room_ = ~std::size_t{0};
};

inline Hello controller(std::uint64_t epoch) {
  return {.name = "controller", .incarnation = {epoch}};
}
inline Hello actor(std::uint64_t life) {
  return {.name = "job/rollout/0", .incarnation = {life}, .rank = 2, .opaque = "cpus=2"};
}

struct Server {
  explicit Server(Binding at = here(), std::uint64_t epoch = 1, LinkOptions options = quick(),
                  Hello hello = {})
      : io("server") {
    hello.name = "controller";
    hello.incarnation = {epoch};
    auto listening =
        LinkServer::listen(io, {std::move(at)}, hello, std::move(options), log.callbacks());
    CHECK(listening);
    link = std::move(*listening);
    link->start();
  }
  IoThread io;
  Log log;
  std::unique_ptr<LinkServer> link;
};

struct Client {
  explicit Client(Dial server, Hello hello = actor(1), LinkOptions options = quick())
      : io("client"),
        link(io, std::move(server), std::move(hello), std::move(options), log.callbacks()) {
    link.start();
  }
  IoThread io;
  Log log;
  LinkClient link;
};

}  // namespace tandem::link
