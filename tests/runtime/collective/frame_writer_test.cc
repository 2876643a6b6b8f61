// FW-1 and FW-2 over TCP connections with tiny buffers: frames and heartbeats of two threads never
// mix, and a heartbeat waits for no frame.
#include "runtime/collective/frame_writer.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <latch>
#include <thread>
#include <vector>

#include "runtime/base/rng.h"

namespace tandem::collective {
namespace {

constexpr Duration kLong = std::chrono::seconds(30);

// Both ends of a TCP connection whose buffers hold a few thousand bytes, so that many writes are
// cut anywhere.
struct Connection {
  Stream writing, reading;

  static Connection make(Privacy privacy = Privacy::kPlain) {
    link::Endpoint bound;
    const OwnedFd listener = listen_stream({}, {}, &bound).value();
    const int few = 4096;  // before the handshake, which settles the window
    EXPECT_EQ(::setsockopt(listener.get(), SOL_SOCKET, SO_RCVBUF, &few, sizeof few), 0);
    Connection both{.writing = Stream(dial_stream(bound, steady_now() + kLong).value()),
                    .reading = {}};
    EXPECT_EQ(::setsockopt(both.writing.fd(), SOL_SOCKET, SO_SNDBUF, &few, sizeof few), 0);
    pollfd came{.fd = listener.get(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&came, 1, poll_timeout_ms(steady_now() + kLong)), 1);
    both.reading = Stream(OwnedFd(::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK)));
    if (privacy == Privacy::kPlain) return both;
    const StreamKeys keys{.sending = seal_key("secret", "there"),
                          .receiving = seal_key("secret", "back")};
    both.writing.seal(keys);
    both.reading.seal({.sending = keys.receiving, .receiving = keys.sending});
    return both;
  }
};

FrameHeader data_header(std::uint64_t sequence, std::size_t bytes) {
  FrameHeader header;
  header.magic = kFrameMagic;
  header.sequence = sequence;
  header.bytes = static_cast<std::uint32_t>(bytes);
  return header;
}

std::vector<std::byte> payload_of(std::uint64_t sequence, std::size_t bytes) {
  return std::vector<std::byte>(bytes, static_cast<std::byte>(sequence));
}

Result<void> until_writable(int fd) {
  pollfd ready{.fd = fd, .events = POLLOUT, .revents = 0};
  if (::poll(&ready, 1, poll_timeout_ms(steady_now() + kLong)) == 0)
    return Error{.message = "nobody reads"};
  return {};
}

// Reads all frames until `last`, in pieces of any size, and says how many heartbeats came.
int read_frames(Stream& from, std::uint64_t last, Rng& rng) {
  int heartbeats = 0;
  std::uint64_t counter = 0;
  for (std::uint64_t sequence = 0; sequence < last;) {
    FrameHeader header;
    if (from.receive_all(bytes_of(header), steady_now() + kLong) != Transfer::kDone ||
        !plausible(header)) {
      ADD_FAILURE() << "a torn header after frame " << sequence;
      return heartbeats;
    }
    std::vector<std::byte> payload(header.bytes);
    for (std::span<std::byte> rest = payload; !rest.empty();) {
      const std::size_t piece = std::min<std::size_t>(rest.size(), 1 + rng.below(3000));
      if (from.receive_all(rest.first(piece), steady_now() + kLong) != Transfer::kDone) {
        ADD_FAILURE() << "a torn payload after frame " << sequence;
        return heartbeats;
      }
      rest = rest.subspan(piece);
    }
    if (header.kind == FrameKind::kHeartbeat) {
      Heartbeat heartbeat;
      std::memcpy(&heartbeat, payload.data(), sizeof heartbeat);
      EXPECT_GT(heartbeat.counter, counter);
      EXPECT_EQ(phase_of(heartbeat), "train");
      counter = heartbeat.counter;
      ++heartbeats;
      continue;
    }
    EXPECT_EQ(header.kind, FrameKind::kData);
    EXPECT_EQ(header.sequence, ++sequence);
    EXPECT_EQ(payload, payload_of(sequence, header.bytes));
  }
  return heartbeats;
}

TEST(FrameWriter, FW1NoFrameBeginsWithinAnother) {
  constexpr std::uint64_t kFrames = 60;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Connection connection = Connection::make(seed % 2 == 0 ? Privacy::kSealed : Privacy::kPlain);
    FrameWriter writer(connection.writing);
    std::atomic<std::uint64_t> beats = 0;
    std::atomic<bool> done = false;
    std::thread heart([&] {
      while (!done) {
        writer.beat(make_heartbeat(++beats, "train"));
        beats.notify_all();
      }
    });
    std::thread worker([&] {
      Rng rng(seed);
      for (std::uint64_t sequence = 1; sequence <= kFrames; ++sequence) {
        // Waits for up to 200 heartbeats, which may fill the socket in the middle of one.
        const std::uint64_t until = beats + rng.below(200);
        for (std::uint64_t seen; (seen = beats) < until;) beats.wait(seen);
        const std::size_t bytes = rng.below(2) == 0 ? rng.below(100) : rng.below(kFrameBytesMax);
        const auto sent = writer.write(data_header(sequence, bytes), payload_of(sequence, bytes),
                                       [&] { return until_writable(connection.writing.fd()); });
        ASSERT_TRUE(sent) << render(sent.error());
        ASSERT_EQ(*sent, Transfer::kDone);
      }
    });
    Rng rng(seed + 1000);
    EXPECT_GT(read_frames(connection.reading, kFrames, rng), 0);
    ::shutdown(connection.reading.fd(),
               SHUT_RDWR);  // frames were torn here, and no thread reads on
    worker.join();
    done = true;
    heart.join();
    if (HasFailure()) return;
  }
}

TEST(FrameWriter, FW2AHeartbeatWaitsForNobody) {
  Connection connection = Connection::make();
  FrameWriter writer(connection.writing);
  const auto payload = payload_of(1, kFrameBytesMax);
  std::latch stuck(1), go_on(1);
  std::thread worker([&] {
    bool first = true;
    const auto sent = writer.write(data_header(1, payload.size()), payload, [&]() -> Result<void> {
      if (std::exchange(first, false)) stuck.count_down();
      go_on.wait();
      return Error{.message = "enough"};
    });
    ASSERT_FALSE(sent);
    EXPECT_EQ(sent.error().message, "enough");
  });
  stuck.wait();
  for (int i = 1; i < 10; ++i) writer.beat(make_heartbeat(1, "train"));  // the writer has the lock
  go_on.count_down();
  worker.join();
  for (int i = 1; i < 10; ++i) writer.beat(make_heartbeat(1, "train"));
  writer.abort({.message = "why"});
  // FW-1: an abort's frame could not be told from data, so the stream ends within the frame.
  FrameHeader header;
  ASSERT_EQ(connection.reading.receive_all(bytes_of(header), steady_now() + kLong),
            Transfer::kDone);
  std::vector<std::byte> got(header.bytes);
  EXPECT_EQ(connection.reading.receive_all(got, steady_now() + kLong), Transfer::kClosed);
}

TEST(FrameWriter, AHeartbeatIsWhatItsPhaseAndCounterSay) {
  const Heartbeat heartbeat = make_heartbeat(7, "a phase with a name that does not fit in");
  EXPECT_EQ(heartbeat.counter, 7u);
  EXPECT_EQ(phase_of(heartbeat), "a phase with a name tha");
  Heartbeat unending;
  std::memset(unending.phase, 'x', sizeof unending.phase);
  EXPECT_EQ(phase_of(unending).size(), sizeof unending.phase);
}

}  // namespace
}  // namespace tandem::collective
