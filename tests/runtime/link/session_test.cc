// The session over a network that loses, repeats, delays and reorders: SE-1 … SE-5.
#include "runtime/link/session.h"

#include <gtest/gtest.h>

#include <map>

#include "runtime/base/rng.h"

namespace tandem::link {
namespace {

using std::chrono::milliseconds;

const SessionKey kKey{{7}, {3}, 1};

SessionLimits small_limits() {
  return {.queue_frames_max = 40,
          .queue_bytes_max = 4000,
          .window_frames_max = 8,
          .window_bytes_max = 1500,
          .frame_bytes_max = 1000,
          .packet_bytes_max = 600};
}

struct Faults {
  double lost = 0, repeated = 0;
  int delay_ms_max = 1;  // packets overtake each other when this is large
};

// One side of a session with its user: the messages to send, those received, and those not yet
// handled.
struct Side {
  explicit Side(const SessionLimits& limits) : session(kKey, limits) {}
  Session session;
  std::uint64_t sent = 0, got = 0;
  std::uint32_t held = 0;
};

std::string frame_of(std::uint64_t n, Rng& sizes) {
  std::string frame = std::to_string(n) + ":";
  frame.append(sizes.below(700), 'x');
  return frame;
}

class Network {
 public:
  Network(std::uint64_t seed, Faults faults, const SessionLimits& limits)
      : rng_(seed), faults_(faults), limits_(limits), sides_{Side(limits), Side(limits)} {}

  // Runs until both sides' frames are delivered and taken, or the time is up.
  void run(std::uint64_t frames, Time until) {
    while (now_ < until) {
      for (int i : {0, 1}) step(i, frames);
      const auto done = [&](Side& s) { return s.sent == frames && s.session.flushed(); };
      if (done(sides_[0]) && done(sides_[1])) break;
      now_ = now_ + milliseconds(1);
    }
    for (const Side& side : sides_) EXPECT_EQ(side.got, frames);  // nothing is missing
  }

 private:
  void step(int i, std::uint64_t frames) {
    Side& me = sides_[i];
    while (me.sent < frames && rng_.below(3) != 0) {
      const Sent sent = me.session.send(frame_of(me.sent, rng_));
      if (sent == Sent::kFull) break;
      ASSERT_EQ(sent, Sent::kAccepted);
      ++me.sent;
    }
    ASSERT_LE(me.session.frames_queued(), limits_.queue_frames_max);  // SE-4
    if (me.held > 0 && rng_.below(2) == 0) {
      const auto done = static_cast<std::uint32_t>(1 + rng_.below(me.held));
      me.session.release(done, now_);
      me.held -= done;
    }
    while (auto packet = me.session.next_packet(now_)) put(1 - i, *packet);
    auto& wire = wires_[i];
    while (!wire.empty() && wire.begin()->first <= now_) {
      receive(i, wire.begin()->second);
      wire.erase(wire.begin());
    }
  }

  void put(int to, const std::string& packet) {
    const int copies = rng_.unit() < faults_.lost ? 0 : rng_.unit() < faults_.repeated ? 2 : 1;
    for (int i = 0; i < copies; ++i) {
      const auto delay =
          milliseconds(1 + rng_.below(static_cast<std::uint64_t>(faults_.delay_ms_max)));
      wires_[to].emplace(now_ + delay, packet);
    }
  }

  void receive(int i, const std::string& packet) {
    Side& me = sides_[i];
    std::vector<std::string> delivered;
    std::optional<std::string> answer;
    ASSERT_EQ(me.session.receive(packet, now_, delivered, answer), Received::kAccepted);
    for (const std::string& frame : delivered) {  // SE-1: the next one, whole
      ASSERT_EQ(frame.substr(0, frame.find(':')), std::to_string(me.got));
      ++me.got;
      ++me.held;
    }
    ASSERT_LE(me.held, limits_.window_frames_max);  // SE-2
  }

  Rng rng_;
  const Faults faults_;
  const SessionLimits limits_;
  Time now_{};
  Side sides_[2];
  std::multimap<Time, std::string> wires_[2];
};

TEST(Session, SE_1_delivers_in_order_and_once_whatever_the_network_does) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(derive_seed(seed, "faults"));
    const Faults faults{.lost = 0.4 * rng.unit(),
                        .repeated = 0.3 * rng.unit(),
                        .delay_ms_max = 1 + static_cast<int>(rng.below(400))};
    Network network(seed, faults, small_limits());
    network.run(120, Time{} + std::chrono::minutes(20));
    if (HasFailure()) break;
  }
}

TEST(Session, a_quiet_network_costs_no_resend) {
  Session a(kKey, {}), b(kKey, {});
  std::vector<std::string> delivered;
  std::optional<std::string> answer;
  Time now{};
  for (int i = 0; i < 10'000; ++i) {
    while (a.send("frame") == Sent::kFull) ADD_FAILURE();
    if (i % 100 != 0) continue;
    now = now + milliseconds(1);
    while (auto packet = a.next_packet(now)) (void)b.receive(*packet, now, delivered, answer);
    b.release(static_cast<std::uint32_t>(delivered.size()), now);
    delivered.clear();
    while (auto packet = b.next_packet(now)) (void)a.receive(*packet, now, delivered, answer);
  }
  EXPECT_EQ(a.counters().frames_resent, 0u);
  EXPECT_LE(a.counters().packets_sent, 102u);  // a hundred frames travel together
  EXPECT_LE(b.counters().packets_sent, 12u);   // and are acknowledged rarely
}

TEST(Session, SE_4_a_full_queue_refuses_and_takes_again_when_the_peer_took_some) {
  const SessionLimits limits = small_limits();
  Session a(kKey, limits), b(kKey, limits);
  std::uint32_t accepted = 0;
  while (a.send("x") == Sent::kAccepted) ++accepted;
  EXPECT_EQ(accepted, limits.queue_frames_max);
  EXPECT_EQ(a.counters().frames_refused, 1u);
  EXPECT_EQ(a.send(std::string(1001, 'x')), Sent::kTooLarge);

  std::vector<std::string> delivered;
  std::optional<std::string> answer;
  Time now{};
  const auto exchange = [&] {
    now = now + milliseconds(50);
    while (auto packet = a.next_packet(now)) (void)b.receive(*packet, now, delivered, answer);
    now = now + milliseconds(50);
    while (auto packet = b.next_packet(now)) (void)a.receive(*packet, now, delivered, answer);
  };
  exchange();
  EXPECT_EQ(delivered.size(), limits.window_frames_max);  // SE-2: no more until these are taken
  exchange();
  EXPECT_EQ(delivered.size(), limits.window_frames_max);
  EXPECT_EQ(a.send("x"), Sent::kFull);
  b.release(limits.window_frames_max, now);
  exchange();
  EXPECT_EQ(a.send("x"), Sent::kAccepted);
  EXPECT_EQ(delivered.size(), limits.window_frames_max);
  exchange();
  EXPECT_EQ(delivered.size(), 2 * limits.window_frames_max);
}

TEST(Session, SE_2_a_receiver_with_a_smaller_window_is_not_overrun) {
  SessionLimits narrow = small_limits();
  narrow.window_frames_max = 4;
  Session a(kKey, small_limits()), b(kKey, narrow);
  for (int i = 0; i < 20; ++i) (void)a.send(std::to_string(i));
  std::vector<std::string> delivered;
  std::optional<std::string> answer;
  Time now{};
  for (int second = 0; second < 60; ++second) {
    const std::size_t before = delivered.size();
    now = now + std::chrono::seconds(1);
    while (auto packet = a.next_packet(now)) (void)b.receive(*packet, now, delivered, answer);
    ASSERT_LE(delivered.size() - before, narrow.window_frames_max);
    b.release(static_cast<std::uint32_t>(delivered.size() - before), now);
    while (auto packet = b.next_packet(now + milliseconds(100))) {
      (void)a.receive(*packet, now, delivered, answer);
    }
  }
  EXPECT_EQ(delivered.size(), 20u);
  // Only messages that were sent before the first grant was known had to travel twice.
  EXPECT_EQ(a.counters().frames_resent, 4u);
}

TEST(Session, a_lost_grant_is_asked_for_again) {
  const SessionLimits limits = small_limits();
  Session a(kKey, limits), b(kKey, limits);
  for (std::uint32_t i = 0; i < limits.window_frames_max + 1; ++i) (void)a.send("x");
  std::vector<std::string> delivered;
  std::optional<std::string> answer;
  Time now{};
  while (auto packet = a.next_packet(now)) (void)b.receive(*packet, now, delivered, answer);
  b.release(limits.window_frames_max, now);
  while (b.next_packet(now + milliseconds(100))) continue;  // both reports are lost
  ASSERT_EQ(a.next_packet(now), std::nullopt);
  now = a.next_deadline().value();
  while (auto packet = a.next_packet(now)) (void)b.receive(*packet, now, delivered, answer);
  while (auto packet = b.next_packet(now)) (void)a.receive(*packet, now, delivered, answer);
  while (auto packet = a.next_packet(now)) (void)b.receive(*packet, now, delivered, answer);
  EXPECT_EQ(delivered.size(), limits.window_frames_max + 1);
}

TEST(Session, a_reconnect_sends_again_at_once) {
  Session a(kKey, {}), b(kKey, {});
  (void)a.send("lost");
  ASSERT_TRUE(a.next_packet(Time{}));  // into a connection that broke
  EXPECT_FALSE(a.next_packet(Time{}));
  a.reconnected();
  std::vector<std::string> delivered;
  std::optional<std::string> answer;
  (void)b.receive(a.next_packet(Time{}).value(), Time{}, delivered, answer);
  EXPECT_EQ(delivered, std::vector<std::string>{"lost"});
}

TEST(Session, SE_3_older_lives_are_fenced_and_newer_ones_end_this_session) {
  const SessionKey newer_keys[] = {{{8}, {1}, 1}, {{7}, {4}, 1}, {{7}, {3}, 2}};
  for (const SessionKey& newer : newer_keys) {
    Session old(kKey, {}), now(newer, {});
    (void)old.send("from the dead");
    std::vector<std::string> delivered;
    std::optional<std::string> answer;
    const std::string late = old.next_packet(Time{}).value();
    EXPECT_EQ(now.receive(late, Time{}, delivered, answer), Received::kStale);
    EXPECT_TRUE(delivered.empty());
    EXPECT_EQ(now.counters().packets_stale, 1u);
    ASSERT_TRUE(answer);
    EXPECT_EQ(Session::fence_key(*answer), newer);
    std::optional<std::string> none;
    EXPECT_EQ(old.receive(*answer, Time{}, delivered, none), Received::kFenced);
    EXPECT_FALSE(none);

    (void)now.send("from the living");
    const std::string fresh = now.next_packet(Time{}).value();
    EXPECT_EQ(old.receive(fresh, Time{}, delivered, none), Received::kFenced);
    EXPECT_TRUE(delivered.empty());
    EXPECT_EQ(now.receive(Session::fence(kKey), Time{}, delivered, none), Received::kAccepted);
  }
}

TEST(Session, SE_5_any_bytes_may_come) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng(seed);
    Session a(kKey, small_limits()), b(kKey, small_limits());
    for (int i = 0; i < 5; ++i) (void)a.send(std::string(rng.below(50), 'x'));
    const std::string good = a.next_packet(Time{}).value();
    std::vector<std::string> delivered;
    std::optional<std::string> answer;
    for (int i = 0; i < 50; ++i) {
      std::string bad = good;
      bad[rng.below(bad.size())] = static_cast<char>(rng.next());
      bad.resize(rng.below(2) ? bad.size() : rng.below(bad.size()));
      (void)b.receive(bad, Time{}, delivered, answer);
      EXPECT_EQ(b.receive("", Time{}, delivered, answer), Received::kMalformed);
      const Received torn = b.receive(good.substr(0, good.size() - 1), Time{}, delivered, answer);
      EXPECT_EQ(torn, Received::kMalformed);
      b.next_packet(Time{});
      EXPECT_LE(delivered.size(), small_limits().window_frames_max);
    }
  }
}

}  // namespace
}  // namespace tandem::link
