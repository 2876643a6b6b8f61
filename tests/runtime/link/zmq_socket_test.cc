#include "runtime/link/zmq_socket.h"

#include <gtest/gtest.h>

#include <deque>
#include <filesystem>
#include <future>
#include <string>
#include <utility>

#include "runtime/link/free_port.h"
#include "tests/runtime/link/bindings.h"
#include "tests/runtime/patience.h"

namespace tandem::link {
namespace {

constexpr int kMessages = 20'000;  // many times the queue, and many turns of the loop
const ZmqOptions kOptions{.message_bytes_max = 1 << 20, .queue_messages = 50};

// Sends every message back. Only its own thread uses its fields.
class Echo {
 public:
  explicit Echo(const Binding& place = here()) {
    io_.run([this, &place] {
      socket_ = std::make_unique<ZmqSocket>(io_, zmq::socket_type::router, kOptions);
      at_ = socket_->bind(place).value();
      EXPECT_TRUE(socket_->bind(port_.binding()));  // as a controller does
      socket_->start(
          [this](std::string_view from, std::span<zmq::message_t> parts) {
            waiting_.emplace_back(from, parts[0].to_string());
          },
          [this] { return write_back(); });
    });
  }
  ~Echo() {
    io_.run([this] { socket_.reset(); });
  }
  const Endpoint& at() const { return at_; }

 private:
  bool write_back() {
    bool wrote = false;
    while (!waiting_.empty() &&
           socket_->write(waiting_.front().first, waiting_.front().second) == Wrote::kSent) {
      waiting_.pop_front();
      wrote = true;
    }
    return wrote;
  }

  const GuardedPort port_;
  IoThread io_{"echo"};
  std::unique_ptr<ZmqSocket> socket_;
  Endpoint at_;
  std::deque<std::pair<std::string, std::string>> waiting_;
};

// Sends the numbers 0 … kMessages - 1 as fast as they go and expects them back in order.
class Counter {
 public:
  explicit Counter(const Endpoint& to, const std::string& name = "counter") {
    io_.run([this, &to, &name] {
      socket_ = std::make_unique<ZmqSocket>(io_, zmq::socket_type::dealer, kOptions);
      socket_->connect({to, {}}, name);
      socket_->start(
          [this](std::string_view, std::span<zmq::message_t> parts) {
            EXPECT_EQ(parts[0].to_string(), std::to_string(back_));
            if (++back_ == kMessages) all_back_.set_value();
          },
          [this] { return send(); });
    });
  }
  ~Counter() {
    io_.run([this] { socket_.reset(); });
  }
  bool wait() { return all_back_.get_future().wait_for(kPatience) == std::future_status::ready; }
  bool count_again() {  // after wait()
    io_.run([this] {
      all_back_ = {};
      sent_ = back_ = 0;
      socket_->pump();
    });
    return wait();
  }

 private:
  bool send() {
    const int before = sent_;
    while (sent_ < kMessages && socket_->write({}, std::to_string(sent_)) == Wrote::kSent) ++sent_;
    return sent_ > before;
  }

  IoThread io_{"counter"};
  std::unique_ptr<ZmqSocket> socket_;
  int sent_ = 0, back_ = 0;
  std::promise<void> all_back_;
};

// No timer pumps from outside, as a link's does: if either side misses one edge, messages stay
// where they are.
TEST(ZmqSocket, NeverWaitsWhileThereIsInputOrRoomForOutput) {  // ZQ-1
  const Echo echo;
  Counter counter(echo.at());
  EXPECT_TRUE(counter.wait());
}

TEST(ZmqSocket, AUnixSocketWhoseFolderWasRemovedIsBoundAgain) {  // ZQ-2
  SocketFolder folder = SocketFolder::make().value();
  const Echo echo({folder.next(), std::nullopt});
  Counter before(echo.at(), "before");
  ASSERT_TRUE(before.wait());
  std::filesystem::remove_all(folder.path());
  EXPECT_TRUE(before.count_again()) << "a connection needs no file";
  ASSERT_EQ(folder.keep(Time{}).value(), SocketFolder::Kept::kMadeAgain);
  Counter after(echo.at(), "after");
  EXPECT_TRUE(after.wait());
  EXPECT_TRUE(before.count_again());
}

TEST(ZmqSocket, PN_1_takes_a_port_of_its_range_and_names_the_range_that_has_none) {
  const std::uint16_t free = free_port().value();
  const GuardedPort port;
  Binding place = port.binding();
  place.ports = {free, free};
  IoThread io("listener");
  io.run([&] {
    ZmqSocket first(io, zmq::socket_type::router, kOptions);
    const auto bound = first.bind(place);
    ASSERT_TRUE(bound) << render(bound.error());
    EXPECT_EQ(bound->port, free);
    ZmqSocket second(io, zmq::socket_type::router, kOptions);
    const auto none = second.bind(place);
    ASSERT_FALSE(none);
    EXPECT_NE(none.error().message.find(to_string(place.ports)), std::string::npos)
        << none.error().message;
  });
}

}  // namespace
}  // namespace tandem::link
