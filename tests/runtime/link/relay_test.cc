#include "runtime/link/relay.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <set>

#include "tests/runtime/link/bindings.h"

namespace tandem::link {
namespace {

constexpr auto kHangs = std::chrono::seconds(60);  // ends a hang; never measured

// Waits for what threads of links bring about.
class Seen {
 public:
  void add(const std::string& what) {
    const std::lock_guard lock(mutex_);
    all_.push_back(what);
    changed_.notify_all();
  }
  // Waits for the next one and returns it.
  std::string next() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, kHangs, [&] { return !all_.empty(); })) return "nothing";
    const std::string first = all_.front();
    all_.pop_front();
    return first;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> all_;
};

// A peer of the relay: tells what comes.
class Dialler {
 public:
  Dialler(const Endpoint& at, const std::string& name, std::uint64_t incarnation) {
    LinkCallbacks callbacks;
    callbacks.on_parcel = [this](const ActorId&, std::string& frame) {
      seen.add(frame);
      return Offer::kTaken;
    };
    callbacks.on_up = [this](const ActorId& server, const Hello&) {
      seen.add("up " + to_string(server));
    };
    callbacks.on_down = [this](const ActorId&, const Down& down) {
      seen.add(std::string("down ") + link::name(down.reason));
    };
    link = std::make_unique<LinkClient>(
        io_, Dial{at, std::nullopt},
        Hello{.name = name, .incarnation = {incarnation}, .build = "b"}, LinkOptions{}, callbacks);
    link->start();
  }
  Seen seen;

 private:
  IoThread io_;

 public:
  std::unique_ptr<LinkClient> link;
};

class RelayTest : public testing::Test {
 protected:
  Hello server(std::uint64_t epoch) {
    return {.name = "controller", .incarnation = {epoch}, .build = "b"};
  }
  const Endpoint at = here().at;
  Seen to_server;
  Relay relay{at, {"job/counter/0", {3}}, [this](std::string frame) {
                to_server.add(frame);
                return Sent::kAccepted;
              }};
};

TEST_F(RelayTest, FramesGoBothWaysAndWaitForThePeer) {
  ASSERT_TRUE(relay.server_up(server(1)));
  EXPECT_EQ(relay.pass("early"), Offer::kLater);
  Dialler peer(at, "job/counter/0", 3);
  EXPECT_EQ(peer.seen.next(), "up controller#1");
  EXPECT_EQ(relay.pass("order"), Offer::kTaken);
  EXPECT_EQ(peer.seen.next(), "order");
  EXPECT_EQ(peer.link->send("answer"), Sent::kAccepted);
  EXPECT_EQ(to_server.next(), "answer");
  EXPECT_EQ(relay.to_peer()("own"), Sent::kAccepted);
  EXPECT_EQ(peer.seen.next(), "own");
}

TEST_F(RelayTest, OnlyThePeerIsLetIn_RY1) {
  ASSERT_TRUE(relay.server_up(server(1)));
  Dialler other(at, "job/counter/1", 3), older(at, "job/counter/0", 2), node(at, "node:a@1", 1);
  for (Dialler* const client : {&other, &older, &node})
    EXPECT_EQ(client->seen.next(), "down refused");
}

TEST_F(RelayTest, AServerThatDiesAndTheNextOneShowAsThatToThePeer) {
  ASSERT_TRUE(relay.server_up(server(1)));
  Dialler peer(at, "job/counter/0", 3);
  EXPECT_EQ(peer.seen.next(), "up controller#1");
  relay.server_down();
  EXPECT_EQ(peer.seen.next(), "down disconnected") << "no good-bye, which would end the peer";
  EXPECT_EQ(relay.pass("lost"), Offer::kLater);
  ASSERT_TRUE(relay.server_up(server(2)));
  EXPECT_EQ(peer.seen.next(), "up controller#2");
}

}  // namespace
}  // namespace tandem::link
