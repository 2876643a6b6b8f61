// CO-5 over sockets: whom the ranks of a gang take for hung, and whom not. A rank 0 that is stopped
// for real is this program again.
#include "runtime/collective/heartbeat.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <future>
#include <latch>

#include "runtime/base/guarded.h"
#include "runtime/base/rng.h"
#include "runtime/node/process_host.h"
#include "tests/runtime/collective/gang_builder.h"
#include "tests/runtime/patience.h"

namespace tandem::collective {
namespace {

using std::chrono::milliseconds;

// The content of rank 0's heartbeats, which count themselves.
class Pulse {
 public:
  explicit Pulse(const char* phase, bool moves) : phase_(phase), moves_(moves) {}

  std::function<link::ProgressReport()> reporter() {
    return [this] {
      const int count = ++heartbeats_;
      heartbeats_.notify_all();
      return link::ProgressReport{.counter = moves_ ? static_cast<std::uint64_t>(count) : 1,
                                  .phase = phase_};
    };
  }
  void wait_for(int heartbeats) const {
    for (int seen; (seen = heartbeats_) < heartbeats;) heartbeats_.wait(seen);
  }

 private:
  const char* const phase_;
  const bool moves_;
  std::atomic<int> heartbeats_ = 0;
};

GangLiveness limits(Duration every, Duration silence_max, std::optional<Duration> stuck_max) {
  return {.heartbeat_every = every,
          .silence_max = silence_max,
          .progress = {},
          .stuck_max = [stuck_max](std::string_view phase) {
            return phase == "idle" ? std::nullopt : stuck_max;
          }};
}

// Three ranks, of which 1 and 2 await rank 0's word, and rank 0 gives it after `heartbeats` of
// them. Returns the first fault in words, "" where there was none.
std::string word_after(Pulse& pulse, int heartbeats, const GangLiveness& of_others) {
  Gang gang = make_socket_gang(
      3, {.heartbeat_every = of_others.heartbeat_every, .progress = pulse.reporter()}, of_others);
  Guarded<std::string> complaint;
  on_each_rank(gang, [&](Collective& rank) {
    std::vector<std::byte> word(16, static_cast<std::byte>(rank.rank()));
    if (rank.rank() == 0) pulse.wait_for(heartbeats);
    const auto done = rank.rank() == 0 ? rank.broadcast(word, 0, kLong)
                                       : rank.await_broadcast(word, "rank 0's word");
    if (!done) complaint.with([&](auto& text) { text += done.error().message + "; "; });
  });
  return complaint.with([](const auto& text) { return text; });
}

TEST(Heartbeat, CO5ARankZeroThatIsBusyAndGetsOnIsWaitedFor) {
  EXPECT_EQ("", with_growing_patience([](Duration patience) {
              Pulse pulse("train", true);
              return word_after(pulse, 60, limits(patience / 20, patience, patience));
            }));
}

TEST(Heartbeat, CO5AnIdleRankZeroIsWaitedForWithoutProgress) {
  EXPECT_EQ("", with_growing_patience([](Duration patience) {
              Pulse pulse("idle", false);
              return word_after(pulse, 60, limits(patience / 20, patience, patience));
            }));
}

TEST(Heartbeat, CO5ARankZeroThatIsStuckIsFoundWhileItsHeartbeatsCome) {
  const Duration soon = milliseconds(60);
  Pulse pulse("train", false);
  Gang gang = make_socket_gang(3, {.heartbeat_every = soon / 20, .progress = pulse.reporter()},
                               limits(soon / 20, kLong, soon));
  std::latch others(2);
  on_each_rank(gang, [&](Collective& rank) {
    if (rank.rank() == 0) return others.wait();
    std::vector<std::byte> word(16);
    const auto done = rank.await_broadcast(word, "rank 0's word");
    others.count_down();
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, ErrorCode::kTimedOut);
    const std::string& text = done.error().message;
    EXPECT_EQ(text.find("rank 0 of the gang has made no progress for "), 0u) << text;
    const std::string end =
        " while rank " + std::to_string(rank.rank()) + " waited for rank 0's word (phase train)";
    EXPECT_TRUE(text.ends_with(end)) << text;
  });
}

// Rank 0's own thread gets no further, because it waits for rank 2: that wait has a timeout, and
// the error is to name rank 2, not rank 0.
TEST(Heartbeat, CO5ARankZeroThatWaitsInACallIsNotStuck) {
  EXPECT_EQ("", with_growing_patience([](Duration patience) {
              Pulse pulse("train", false);
              Gang gang = make_socket_gang(
                  3, {.heartbeat_every = patience / 20, .progress = pulse.reporter()},
                  limits(patience / 20, kLong, patience));
              Guarded<std::string> complaint;
              on_each_rank(gang, [&](Collective& rank) {
                if (rank.rank() == 2) pulse.wait_for(60);
                const auto done = rank.barrier(kLong);
                if (!done) complaint.with([&](auto& text) { text += done.error().message + "; "; });
              });
              return complaint.with([](const auto& text) { return text; });
            }));
}

// FW-1 holds through the whole collective: heartbeats come as often as possible, in sums of
// any size.
TEST(Heartbeat, CO1HeartbeatsBetweenTheFramesOfASumLeaveItsBits) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Pulse pulse("train", true);
    const Duration often = std::chrono::microseconds(1);
    Gang gang = make_socket_gang(3, {.heartbeat_every = often, .progress = pulse.reporter()});
    on_each_rank(gang, [&](Collective& rank) {
      Rng sizes(seed);  // the same on each rank
      for (int round = 0; round < 6; ++round) {
        const std::size_t count = sizes.below(600'000);
        std::vector<float> values(count);
        for (std::size_t i = 0; i < count; ++i)
          values[i] = static_cast<float>((i + static_cast<std::size_t>(rank.rank())) % 1000);
        const auto done = rank.all_reduce_sum(values, kLong);
        ASSERT_TRUE(done) << render(done.error());
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < count; ++i)  // small whole numbers: every order is exact
          wrong += values[i] != static_cast<float>(i % 1000 + (i + 1) % 1000 + (i + 2) % 1000);
        ASSERT_EQ(wrong, 0u) << "of " << count;
        if (rank.rank() == 1) pulse.wait_for(round * 20);  // some come while no rank listens
      }
    });
  }
}

// A rank 0 that knows the secret, and says nothing but heartbeats, as fast as they are taken.
TEST(Heartbeat, CO2AFloodOfHeartbeatsEndsWithTheTimeout) {
  link::Endpoint bound;
  const OwnedFd forger = listen_stream({}, {}, &bound).value();
  GangSpec spec = spec_of(2);
  spec.privacy = Privacy::kPlain;
  auto rank = std::async(std::launch::async, [&] {
    auto joined = dial_gang(bound, 1, spec, kLong).value();
    const auto done = joined->barrier(milliseconds(100));
    return done ? "passed" : done.error().message;
  });
  pollfd came{.fd = forger.get(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&came, 1, poll_timeout_ms(steady_now() + kLong)), 1);
  const OwnedFd caller(::accept4(forger.get(), nullptr, nullptr, SOCK_CLOEXEC));  // it blocks
  const Challenge challenge = make_challenge();
  std::span<const std::byte> asked = std::as_bytes(std::span(&challenge, 1));
  send_some(caller.get(), asked);
  Hello hello;
  ASSERT_EQ(
      receive_all(caller.get(), std::as_writable_bytes(std::span(&hello, 1)), steady_now() + kLong),
      Transfer::kDone);
  FrameHeader welcome;
  welcome.magic = kFrameMagic;
  welcome.kind = FrameKind::kWelcome;
  welcome.bytes = kProofBytes;
  std::string said(reinterpret_cast<const char*>(&welcome), sizeof welcome);
  said += welcome_proof(meeting_secret(spec), hello, challenge);
  std::string flood;  // more than both buffers hold, so that the reader never finds them empty
  for (int i = 0; i < 100'000; ++i) flood += frame_of(make_heartbeat(1, "train"));
  std::span<const std::byte> bytes = std::as_bytes(std::span(said));
  while (send_some(caller.get(), bytes) == Transfer::kDone) {  // until it hangs up
    bytes = std::as_bytes(std::span(flood));
  }
  EXPECT_EQ(rank.get(), "timed out in barrier, waiting for rank 0");
}

// A machine that stops for an hour: no rank has listened for an hour.
TEST(Heartbeat, CO5TimeInWhichNobodyListenedAccusesNobody) {
  RankZeroWatch watch(
      limits(std::chrono::seconds(1), std::chrono::seconds(10), std::chrono::seconds(60)));
  watch.begin_call();
  watch.heard(make_heartbeat(1, "train"));
  const auto verdict = [&] {
    const auto error = watch.verdict(3, "rank 0's word");
    return error ? error->message : "";
  };
  for (int pieces = 1; pieces < 10; ++pieces) watch.listened(std::chrono::hours(1));
  EXPECT_EQ(verdict(), "");
  watch.listened(std::chrono::hours(1));
  EXPECT_EQ(verdict(),
            "rank 0 of the gang has been silent for 10 s while rank 3 waited for rank 0's word");
  watch.heard(make_heartbeat(1, "train"));
  EXPECT_EQ(verdict(), "");
  for (int pieces = 10; pieces < 61; ++pieces) {
    watch.listened(std::chrono::hours(1));
    watch.heard(make_heartbeat(1, "train"));
  }
  EXPECT_EQ(verdict(),
            "rank 0 of the gang has made no progress for 61 s while rank 3 waited for rank 0's "
            "word (phase train)");
  watch.heard(make_heartbeat(2, "train"));
  EXPECT_EQ(verdict(), "");
}

constexpr Duration kChildBeats = milliseconds(3);
constexpr std::size_t kAddressBytes = 64;  // bytes in which the child tells where it listens

// Rank 0 is a process that is stopped: it neither computes nor beats, and its connections stay.
std::string stop_rank_zero(Duration patience) {
  link::Endpoint bound;
  const OwnedFd meeting = listen_stream({}, {}, &bound).value();
  node::PosixProcessHost host;
  const auto process = host.spawn({.name = "rank 0",
                                   .argv = {"/proc/self/exe", "--lead-a-gang", to_string(bound)},
                                   .environment = {},
                                   .log_path = "/dev/null",
                                   .working_directory = {}},
                                  [](node::ProcessId, const node::ExitStatus&) {});
  if (!process) return process.error().message;
  pollfd came{.fd = meeting.get(), .events = POLLIN, .revents = 0};
  if (::poll(&came, 1, poll_timeout_ms(steady_now() + kLong)) != 1) return "rank 0 did not start";
  const OwnedFd caller(::accept4(meeting.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  std::string address(kAddressBytes, ' ');
  if (receive_all(caller.get(), std::as_writable_bytes(std::span(address)), steady_now() + kLong) !=
      Transfer::kDone)
    return "rank 0 did not say where it listens";
  address.resize(address.find(' '));
  const link::Endpoint at = link::parse_endpoint(address).value();

  std::latch met(2);
  const auto follow = [&](int rank) -> std::string {
    GangSpec spec = spec_of(3);
    spec.liveness = {.heartbeat_every = kChildBeats, .silence_max = patience};
    auto joined = dial_gang(at, rank, spec, kLong);
    std::vector<std::byte> word(16);
    const Result<void> first =
        joined ? (*joined)->await_broadcast(word, "the first word") : joined.error();
    met.count_down();
    if (!first) return first.error().message;
    const auto second = (*joined)->await_broadcast(word, "the second word");
    if (second) return "a second word";
    const std::string& text = second.error().message;
    const bool right =
        text.starts_with("rank 0 of the gang has been silent for ") &&
        text.ends_with(" while rank " + std::to_string(rank) + " waited for the second word");
    return right ? "" : text;
  };
  auto rank_1 = std::async(std::launch::async, follow, 1);
  auto rank_2 = std::async(std::launch::async, follow, 2);
  met.wait();
  host.signal(process->id, SIGSTOP);
  const std::string first = rank_1.get(), second = rank_2.get();
  return first.empty() ? second : first;
}

TEST(Heartbeat, CO5ARankZeroThatIsStoppedIsFoundAndNamed) {
  EXPECT_EQ("", with_growing_patience(stop_rank_zero));
}

int lead_a_gang(const std::string& told) {
  GangListener listener = GangListener::listen().value();
  std::string address = to_string(listener.endpoint());
  address.resize(kAddressBytes, ' ');
  const OwnedFd parent =
      dial_stream(link::parse_endpoint(told).value(), steady_now() + kLong).value();
  std::span<const std::byte> said = std::as_bytes(std::span(address));
  send_some(parent.get(), said);
  GangSpec spec = spec_of(3);
  spec.liveness.heartbeat_every = kChildBeats;
  auto rank = std::move(listener).accept(spec, kLong).value();
  std::vector<std::byte> word(16);
  if (!rank->broadcast(word, 0, kLong)) return 1;
  for (;;) ::pause();
}

}  // namespace
}  // namespace tandem::collective

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv, argv + argc);
  if (argc == 3 && arguments[1] == "--lead-a-gang") {
    return tandem::collective::lead_a_gang(arguments[2]);
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
