// Frames that other threads than the IoThread write: their order, and that no input is forgotten
// after such a write. Tests runtime/link/link.h, runtime/link/zmq_socket.h.
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/rng.h"
#include "runtime/link/link.h"
#include "runtime/link/zmq_socket.h"
#include "tests/runtime/link/bindings.h"
#include "tests/runtime/link/link_ends.h"
#include "tests/runtime/patience.h"

namespace tandem::link {
namespace {

const ActorId kRollout{"job/rollout/0", {1}};
const ZmqOptions kRoomy{.message_bytes_max = 1 << 20, .queue_messages = 20'000};

// Keeps an IoThread busy, so that it writes and reads nothing.
class Held {
 public:
  explicit Held(IoThread& io) {
    std::promise<void> begun;
    io.post([&begun, end = end_.get_future().share()] {
      begun.set_value();
      end.wait();
    });
    begun.get_future().wait();
  }
  ~Held() { end_.set_value(); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  std::promise<void> end_;
};

TEST(SendingThreads, A_lone_frame_is_written_by_the_thread_that_sends_it) {
  Server server;
  Client client({server.link->endpoint(), {}});
  ASSERT_TRUE(server.log.wait_up(1) && client.log.wait_up(1));
  {
    const Held held(client.io);
    ASSERT_EQ(client.link.send("up 0"), Sent::kAccepted);
    EXPECT_TRUE(server.log.wait_parcels(1)) << "the client's IoThread was needed";
    // The IoThread gathers the frames behind one that is under way.
    for (int i = 1; i < 100; ++i)
      ASSERT_EQ(client.link.send("up " + std::to_string(i)), Sent::kAccepted);
  }
  ASSERT_TRUE(server.log.wait_parcels(100));
  {
    const Held held(server.io);
    ASSERT_EQ(server.link->send(kRollout, "down 0"), Sent::kAccepted);
    EXPECT_TRUE(client.log.wait_parcels(1)) << "the server's IoThread was needed";
  }
  const auto parcels = server.log.parcels();
  for (std::size_t i = 0; i < parcels.size(); ++i) EXPECT_EQ(parcels[i], "up " + std::to_string(i));
  const auto status = client.link.server();
  ASSERT_TRUE(status);
  EXPECT_LT(status->session.packets_sent, 50u) << "each frame behind the first had its own packet";
}

// Sends "SENDER:NUMBER" for each number from 0 to `frames` - 1, in bursts and with pauses.
template <class Send>
void send_numbers(Send send, int sender, int frames, std::uint64_t seed) {
  Rng rng(derive_seed(seed, "sender " + std::to_string(sender)));
  for (int i = 0; i < frames; ++i) {
    const std::string frame = std::to_string(sender) + ":" + std::to_string(i);
    while (send(frame) == Sent::kFull) std::this_thread::yield();
    if (rng.below(4) == 0)
      for (std::uint64_t pause = rng.below(64); pause > 0; --pause) std::this_thread::yield();
  }
}

// The frames of each sender are all there, in order.
void expect_in_order(const std::vector<std::string>& parcels, int senders, int frames) {
  std::vector<int> next(static_cast<std::size_t>(senders));
  for (const std::string& parcel : parcels) {
    const std::size_t colon = parcel.find(':');
    const int sender = std::stoi(parcel.substr(0, colon));
    ASSERT_EQ(std::stoi(parcel.substr(colon + 1)), next[static_cast<std::size_t>(sender)]++)
        << "of sender " << sender;
  }
  for (const int count : next) EXPECT_EQ(count, frames);
}

TEST(SendingThreads, SE_1_frames_of_many_threads_arrive_in_the_order_of_each) {
  constexpr int kThreads = 4, kFrames = 1'500;
  for (const bool guarded : {false, true})
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      SCOPED_TRACE((guarded ? "TCP, seed " : "Unix socket, seed ") + std::to_string(seed));
      const GuardedPort port;
      Server server(guarded ? port.binding() : here());
      const std::optional<CurveClient> keys = guarded ? std::optional(port.client) : std::nullopt;
      Client client({server.link->endpoint(), keys});
      ASSERT_TRUE(server.log.wait_up(1) && client.log.wait_up(1));
      {
        std::vector<std::jthread> threads;
        for (int i = 0; i < kThreads; ++i) {
          threads.emplace_back([&, i] {
            send_numbers([&](const std::string& f) { return client.link.send(f); }, i, kFrames,
                         seed);
          });
          threads.emplace_back([&, i] {
            send_numbers([&](const std::string& f) { return server.link->send(kRollout, f); }, i,
                         kFrames, seed + 1000);
          });
        }
      }
      ASSERT_TRUE(server.log.wait_parcels(kThreads * kFrames));
      ASSERT_TRUE(client.log.wait_parcels(kThreads * kFrames));
      expect_in_order(server.log.parcels(), kThreads, kFrames);
      expect_in_order(client.log.parcels(), kThreads, kFrames);
      // Packets that another thread's packet had overtaken would have been dropped.
      EXPECT_EQ(server.link->status(kRollout)->session.frames_early, 0u);
      EXPECT_EQ(client.link.server()->session.frames_early, 0u);
    }
}

// Sends back what it receives.
class Mirror {
 public:
  Mirror() {
    io_.run([this] {
      socket_ = std::make_unique<ZmqSocket>(io_, zmq::socket_type::router, kRoomy);
      at_ = socket_->bind(here()).value();
      socket_->start(
          [this](std::string_view from, std::span<zmq::message_t> parts) {
            EXPECT_EQ(socket_->write(from, parts[0].to_string_view()), Wrote::kSent);
          },
          [] { return false; });
    });
  }
  ~Mirror() {
    io_.run([this] { socket_.reset(); });
  }
  const Endpoint& at() const { return at_; }

 private:
  IoThread io_{"mirror"};
  std::unique_ptr<ZmqSocket> socket_;
  Endpoint at_;
};

// Counts the messages that come; any thread writes. No timer pumps the socket.
class Writer {
 public:
  explicit Writer(const Endpoint& to) {
    io.run([this, &to] {
      socket_ = std::make_unique<ZmqSocket>(io, zmq::socket_type::dealer, kRoomy);
      socket_->connect({to, {}}, "writer");
      socket_->start(
          [this](std::string_view, std::span<zmq::message_t>) {
            const std::lock_guard lock(mutex_);
            ++heard_;
            changed_.notify_all();
          },
          [] { return false; });
    });
  }
  ~Writer() {
    io.run([this] { socket_.reset(); });
  }
  void write(const std::string& message) {
    while (socket_->write({}, message) != Wrote::kSent) std::this_thread::yield();
  }
  bool wait_for(int messages, Duration patience) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, patience, [&] { return heard_ >= messages; });
  }

  IoThread io{"writer"};

 private:
  std::unique_ptr<ZmqSocket> socket_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int heard_ = 0;
};

// Writes bursts, some of them while the loop is held: the first answers come meanwhile, and the
// writes behind them take the news of those.
void write_bursts(Writer& writer, std::atomic<int>& written, std::uint64_t seed, bool alone) {
  Rng rng(seed);
  for (int round = 0; round < 40; ++round) {
    {
      std::optional<Held> held;
      if (alone && rng.below(2) == 0) held.emplace(writer.io);
      for (std::uint64_t burst = 1 + rng.below(40); burst > 0; --burst) {
        writer.write("message");
        ++written;
        for (std::uint64_t pause = rng.below(8); pause > 0; --pause) std::this_thread::yield();
      }
    }
    // Then all is quiet: nothing that comes later could bring a forgotten message to light.
    if (alone || rng.below(4) == 0) {
      ASSERT_TRUE(writer.wait_for(written, kPatience));
    }
  }
}

TEST(SendingThreads, ZQ_1_input_is_not_forgotten_after_a_write_of_another_thread) {
  for (const int threads : {1, 3})
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      SCOPED_TRACE(std::to_string(threads) + " threads, seed " + std::to_string(seed));
      const Mirror mirror;
      Writer writer(mirror.at());
      std::atomic<int> written = 0;
      {
        std::vector<std::jthread> writers;
        for (int i = 0; i < threads; ++i)
          writers.emplace_back([&, i] {
            write_bursts(writer, written, derive_seed(seed, "writer " + std::to_string(i)),
                         threads == 1);
          });
      }
      ASSERT_TRUE(writer.wait_for(written, kPatience));
    }
}

}  // namespace
}  // namespace tandem::link
