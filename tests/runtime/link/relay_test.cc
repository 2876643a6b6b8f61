#include "runtime/link/relay.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <set>
#include <thread>

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
  // Without `work` it tells nothing of its progress.
  Dialler(const Endpoint& at, const std::string& name, std::uint64_t incarnation,
          const Progress* work = nullptr) {
    LinkOptions options;
    if (work) options.progress = [work] { return work->report(); };
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
        Hello{.name = name, .incarnation = {incarnation}, .build = "b"}, options, callbacks);
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

TEST_F(RelayTest, TheServerHearsOfThePeersWorkWhatThePeerTells_RY2) {
  const auto hears = [&](const std::string& phase) {
    const Time end = steady_now() + kHangs;
    while (relay.progress(steady_now()).phase != phase) {
      if (steady_now() > end) return false;
      std::this_thread::yield();
    }
    return true;
  };
  ASSERT_TRUE(relay.server_up(server(1)));
  EXPECT_TRUE(hears("connect"));
  Progress work;
  work.enter("handler", steady_now());
  work.beat(steady_now());
  Dialler peer(at, "job/counter/0", 3, &work);
  EXPECT_TRUE(hears("handler"));
  const ProgressReport heard = relay.progress(steady_now());
  EXPECT_EQ(heard.counter, work.report().counter);
  EXPECT_EQ(heard.pieces, 1u);
  EXPECT_EQ(heard.longest, work.report().longest);
  work.enter("idle", steady_now());
  EXPECT_TRUE(hears("idle"));
  peer.link->close(kHangs);
  EXPECT_TRUE(hears("connect"));
}

TEST_F(RelayTest, APeerThatIsAwayIsStillUntilTheNextServerIsUp_RY2) {
  Time now = Time{} + std::chrono::hours(1);
  ASSERT_TRUE(relay.server_up(server(1)));
  EXPECT_EQ(relay.progress(now).still, Duration::zero());
  now = now + std::chrono::milliseconds(300);
  const ProgressReport away = relay.progress(now);
  EXPECT_EQ(away.phase, "connect");
  EXPECT_EQ(away.still, std::chrono::milliseconds(300));
  EXPECT_EQ(now - away.since, std::chrono::milliseconds(300));
  Dialler silent(at, "job/counter/0", 3);
  EXPECT_EQ(silent.seen.next(), "up controller#1");
  EXPECT_EQ(relay.progress(now + std::chrono::milliseconds(100)).still,
            std::chrono::milliseconds(400))
      << "it has told nothing";
  relay.server_down();
  ASSERT_TRUE(relay.server_up(server(2)));
  EXPECT_EQ(relay.progress(now + std::chrono::milliseconds(200)).still, Duration::zero());
}

}  // namespace
}  // namespace tandem::link
