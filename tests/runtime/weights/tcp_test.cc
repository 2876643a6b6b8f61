// Weights over real TCP on loopback, through a relay that cuts, stalls and damages: TW-2, TW-3,
// WT-1, WT-2. Peers that abuse the protocol are in tcp_peers_test.cc.
#include "runtime/weights/tcp.h"

#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <thread>

#include "runtime/base/rng.h"
#include "runtime/link/curve.h"
#include "tests/runtime/weights/relay.h"
#include "tests/runtime/weights/tcp_weights.h"

namespace tandem::weights {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

wire::WeightSource through(const Relay& relay, wire::WeightSource source) {
  source.endpoint = to_string(relay.at());
  return source;
}

TEST_F(TcpWeights, TW2ALinkThatIsCutAnywhereCostsWhatWasOnItsWay) {
  constexpr int kCuts = 5;
  config_.bucket_bytes = 16 << 10;
  Relay relay(endpoint_of(start()));
  ASSERT_TRUE(publish(1));
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    const auto reader = subscriber(through(relay, *publisher_->source()));
    ASSERT_TRUE(comes(*reader, v(1)));
    const std::uint64_t before = relay.bytes();
    std::vector<std::byte> buffer(kArenaBytes);
    const std::uint64_t connections = relay.connections();
    std::vector<std::uint64_t> places;  // from one cut to the next
    for (int cut = 0; cut < kCuts; ++cut)
      places.push_back(kArenaBytes / 8 + rng.below(kArenaBytes / 16));
    relay.cut_after(places);
    ASSERT_TRUE(reader->begin(v(1), buffer));
    ASSERT_TRUE(comes_true([&] { return relay.connections() >= connections + kCuts; }));
    const auto arena = finish(*reader, buffer);
    ASSERT_TRUE(arena) << render(arena.error());
    EXPECT_EQ(*arena, arena_of(1));
    // Encryption adds little. A copy that began anew after each cut would need twice the arena.
    EXPECT_LE(relay.bytes() - before,
              kArenaBytes * 11 / 10 + kCuts * (2 * config_.bucket_bytes + 8'000));
  }
}

TEST_F(TcpWeights, ACutThatLastsEndsTheCopyWithWhatIsKnownAndHeals) {
  Relay relay(endpoint_of(start()));
  ASSERT_TRUE(publish(1));
  config_.stall_max = milliseconds(300);
  const auto reader = subscriber(through(relay, *publisher_->source()));
  ASSERT_TRUE(comes(*reader, v(1)));
  relay.block();
  EXPECT_EQ(reader->newest().value(), v(1)) << "a cut may heal";
  const auto stuck = fetch(*reader, v(1));
  ASSERT_FALSE(stuck);
  EXPECT_EQ(stuck.error().code, ErrorCode::kTimedOut);
  EXPECT_EQ(stuck.error().where, to_string(relay.at()));
  for (const char* part : {"policy version 1 of", "0 of 1060921 bytes", "last heard"}) {
    EXPECT_NE(stuck.error().message.find(part), std::string::npos) << stuck.error().message;
  }
  EXPECT_FALSE(reader->installed());
  relay.heal();
  EXPECT_TRUE(comes_true([&] {
    const auto arena = fetch(*reader, v(1));
    return arena && *arena == arena_of(1);
  }));
}

TEST_F(TcpWeights, WT1ByteThatIsDamagedOnTheWayNeverArrives) {
  constexpr std::uint64_t kSeed = 7;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  Rng rng(kSeed);
  Relay relay(endpoint_of(start()));
  ASSERT_TRUE(publish(1));
  const auto reader = subscriber(through(relay, *publisher_->source()));
  ASSERT_TRUE(comes(*reader, v(1)));
  std::vector<std::byte> buffer(kArenaBytes);
  relay.flip_after(rng.below(kArenaBytes / 8));
  ASSERT_TRUE(reader->begin(v(1), buffer));
  ASSERT_TRUE(comes_true([&] { return relay.flipped(); }));
  const auto arena = finish(*reader, buffer);
  ASSERT_TRUE(arena) << render(arena.error());
  EXPECT_EQ(*arena, arena_of(1));
}

TEST_F(TcpWeights, WhoHasNotTheKeysIsToldNothing) {
  const wire::WeightSource source = start();
  ASSERT_TRUE(publish(1));
  const link::CurveKeys strange = link::make_curve_keys();
  wire::WeightSource other_client = source, other_server = source;
  other_client.client_key = strange.secret_key;
  other_server.server_key = strange.public_key;
  for (const wire::WeightSource& wrong : {other_client, other_server}) {
    Relay relay(endpoint_of(source));
    const auto stranger = subscriber(through(relay, wrong));
    ASSERT_TRUE(comes_true([&] { return relay.connections() > 0 && relay.open() == 0; }));
    EXPECT_FALSE(stranger->available(v(1)));
    EXPECT_EQ(stranger->publisher_life(), 0u);
  }
  const auto guest = subscriber(source);
  ASSERT_TRUE(comes(*guest, v(1)));
  EXPECT_EQ(fetch(*guest, v(1)).value(), arena_of(1));
}

TEST_F(TcpWeights, APublisherListensWhereItIsToldAndNamesWhatSubscribersDial) {
  config_.serving->bind = "0.0.0.0";
  config_.serving->advertise = "localhost";
  const wire::WeightSource source = start();
  ASSERT_TRUE(publish(1));
  EXPECT_EQ(endpoint_of(source).host, "localhost");
  const auto reader = subscriber(source);
  ASSERT_TRUE(comes(*reader, v(1)));
  EXPECT_EQ(fetch(*reader, v(1)).value(), arena_of(1));

  publisher_.reset();
  config_.serving->bind = "192.0.2.1";  // no host has this address (RFC 5737)
  const auto nowhere = make_publisher(config_);
  ASSERT_FALSE(nowhere);
  EXPECT_NE(nowhere.error().where.find("192.0.2.1"), std::string::npos) << nowhere.error().where;
}

TEST_F(TcpWeights, ASourceThatCannotBeIsAnErrorUntilTheNext) {
  const wire::WeightSource source = start();
  ASSERT_TRUE(publish(1));
  const auto reader = subscriber(source);
  for (const auto& spoil : std::vector<std::function<void(wire::WeightSource&)>>{
           [](wire::WeightSource& s) { s.endpoint = "nowhere"; },
           [](wire::WeightSource& s) { s.endpoint = "127.0.0.1:0"; },
           [](wire::WeightSource& s) { s.endpoint = "a b;c:17"; },
           [](wire::WeightSource& s) { s.endpoint = "ipc:///tmp/x"; },
           [](wire::WeightSource& s) { s.server_key = "short"; },
           [](wire::WeightSource& s) { s.client_key = std::string(40, ' '); }}) {
    wire::WeightSource bad = source;
    spoil(bad);
    reader->look_at(bad);
    EXPECT_FALSE(reader->newest());
    EXPECT_FALSE(reader->available(v(1)));
    std::vector<std::byte> buffer(kArenaBytes);
    EXPECT_FALSE(reader->begin(v(1), buffer));
  }
  reader->look_at(source);
  ASSERT_TRUE(comes(*reader, v(1)));
  EXPECT_EQ(fetch(*reader, v(1)).value(), arena_of(1));
}

TEST_F(TcpWeights, ASuccessorGoesOnWhereTheFirstOneStopped) {
  Relay first(endpoint_of(start()));
  ASSERT_TRUE(publish(1) && publish(2));
  const auto reader = subscriber(through(first, *publisher_->source()));
  ASSERT_TRUE(comes(*reader, v(2)));
  EXPECT_EQ(reader->publisher_life(), 1u);
  std::vector<std::byte> buffer(kArenaBytes);
  first.stall_after(kArenaBytes / 2);
  ASSERT_TRUE(reader->begin(v(2), buffer));
  ASSERT_TRUE(comes_true([&] { return reader->progress(1)->bytes_done > kArenaBytes / 4; }));
  const std::uint64_t done = reader->progress(1)->bytes_done;
  ASSERT_LT(done, kArenaBytes);

  const Relay second(endpoint_of(start()));
  reader->look_at(through(second, *publisher_->source()));
  EXPECT_GE(reader->progress(1)->bytes_done, done);
  const auto arena = finish(*reader, buffer);
  ASSERT_TRUE(arena) << render(arena.error());
  EXPECT_EQ(*arena, arena_of(2));
  EXPECT_LT(second.bytes(), kArenaBytes) << "it began anew";
  EXPECT_EQ(reader->publisher_life(), 2u);
}

TEST_F(TcpWeights, ASuccessorWithOtherContentEndsTheCopy) {
  Relay first(endpoint_of(start()));
  ASSERT_TRUE(publish(1));
  const auto reader = subscriber(through(first, *publisher_->source()));
  ASSERT_TRUE(comes(*reader, v(1)));
  first.block();
  std::vector<std::byte> buffer(kArenaBytes);
  ASSERT_TRUE(reader->begin(v(1), buffer));
  const wire::WeightSource next = start();
  ASSERT_TRUE(publish(1, 1));
  reader->look_at(next);
  const auto ended = finish(*reader, buffer);
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, ErrorCode::kNotFound) << ended.error().message;
  EXPECT_EQ(fetch(*reader, v(1)).value(), arena_of(1, 1));
}

TEST_F(TcpWeights, WT2AVersionThatTravelsIsNotReplaced) {
  config_.slots = 2;
  Relay relay(endpoint_of(start()));
  ASSERT_TRUE(publish(1));
  const auto reader = subscriber(through(relay, *publisher_->source()));
  ASSERT_TRUE(comes(*reader, v(1)));
  std::vector<std::byte> buffer(kArenaBytes);
  relay.stall_after(kArenaBytes / 4);
  ASSERT_TRUE(reader->begin(v(1), buffer));
  ASSERT_TRUE(comes_true([&] { return reader->progress(1)->bytes_done > 0; }));
  ASSERT_TRUE(publish(2));
  const auto blocked = publish(3, 0, kSoon);
  ASSERT_FALSE(blocked);
  EXPECT_EQ(blocked.error().code, ErrorCode::kTimedOut);
  EXPECT_NE(blocked.error().message.find("version 1 is being copied"), std::string::npos)
      << blocked.error().message;
  auto third = std::async(std::launch::async, [&] { return publish(3); });
  relay.heal();
  EXPECT_EQ(finish(*reader, buffer).value(), arena_of(1));
  EXPECT_TRUE(third.get());
}

// The subscriber's last message has only so much time, and a machine may stop just then: hence
// several tries.
TEST_F(TcpWeights, TW3ASubscriberThatGoesInTheMiddleOfACopyHoldsNothing) {
  config_.slots = 2;
  bool freed = false;
  for (std::int64_t version = 1; version < 50 && !freed; version += 10) {
    Relay relay(endpoint_of(start()));
    ASSERT_TRUE(publish(version));
    auto reader = subscriber(through(relay, *publisher_->source()));
    ASSERT_TRUE(comes(*reader, v(version)));
    std::vector<std::byte> buffer(kArenaBytes);
    relay.stall_after(kArenaBytes / 4);
    ASSERT_TRUE(reader->begin(v(version), buffer));
    ASSERT_TRUE(comes_true([&] { return reader->progress(1)->bytes_done > 0; }));
    ASSERT_TRUE(publish(version + 1));
    EXPECT_FALSE(publish(version + 2, 0, kSoon));
    relay.heal();
    reader.reset();
    freed = publish(version + 2, 0, seconds(5)).has_value();
  }
  EXPECT_TRUE(freed);
}

TEST_F(TcpWeights, TW3WhoStopsHoldsNoVersionForLongAndDelaysNobody) {
  config_.serving->silence_max = seconds(1);
  config_.slots = 2;
  Relay relay(endpoint_of(start()));
  ASSERT_TRUE(publish(1));
  const auto stopped = subscriber(through(relay, *publisher_->source()));
  ASSERT_TRUE(comes(*stopped, v(1)));
  std::vector<std::byte> buffer(kArenaBytes);
  relay.stall_after(kArenaBytes / 4);
  ASSERT_TRUE(stopped->begin(v(1), buffer));
  ASSERT_TRUE(comes_true([&] { return stopped->progress(1)->bytes_done > 0; }));
  std::vector<std::thread> others;
  for (int i = 0; i < 3; ++i) {
    others.emplace_back([&, source = *publisher_->source()] {
      const auto reader = subscriber(source);
      EXPECT_TRUE(comes_true([&] {
        const auto newest = reader->newest().value();
        if (!newest) return false;
        const auto arena = fetch(*reader, *newest);
        if (!arena) return false;
        EXPECT_EQ(*arena, arena_of(newest->value));
        return *newest == v(6);
      }));
    });
  }
  // From version 3 on the publisher needs the slot that the stopped subscriber holds.
  for (std::int64_t version = 2; version <= 6; ++version) EXPECT_TRUE(publish(version));
  for (std::thread& other : others) other.join();
}

class AutoWeights : public TcpWeights {
 protected:
  AutoWeights() { config_.type = WeightsType::kAuto; }
};

TEST_F(AutoWeights, OnThePublishersHostTheMemoryIsReadAndElsewhereTcp) {
  wire::WeightSource source = start();
  ASSERT_TRUE(publish(1));
  EXPECT_EQ(source.host, host_identity());
  EXPECT_FALSE(source.host.empty());
  const std::string endpoint = std::exchange(source.endpoint, "nowhere at all");
  const auto reader = subscriber(source);
  EXPECT_EQ(fetch(*reader, v(1)).value(), arena_of(1));

  ASSERT_TRUE(publish(2));
  source.host = "elsewhere";
  reader->look_at(source);
  EXPECT_FALSE(reader->newest()) << "it reads the memory still";
  source.endpoint = endpoint;
  reader->look_at(source);
  EXPECT_EQ(reader->installed()->version, v(1));
  ASSERT_TRUE(comes(*reader, v(2)));
  EXPECT_EQ(fetch(*reader, v(2)).value(), arena_of(2));
  EXPECT_EQ(reader->installed()->version, v(2));
}

TEST_F(AutoWeights, ACopyEndsWhenThePublisherIsElsewhereAllOfASudden) {
  wire::WeightSource source = start();
  ASSERT_TRUE(publish(1));
  const auto reader = subscriber(source);
  std::vector<std::byte> buffer(kArenaBytes);
  ASSERT_TRUE(reader->begin(v(1), buffer));
  ASSERT_TRUE(reader->progress(10));
  source.host = "elsewhere";
  reader->look_at(source);
  const auto ended = reader->progress(10);
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, ErrorCode::kNotFound);
  ASSERT_TRUE(comes(*reader, v(1)));
  EXPECT_EQ(fetch(*reader, v(1)).value(), arena_of(1));
}

TEST_F(AutoWeights, WithoutServingOtherHostsAreToldSo) {
  config_.serving.reset();
  auto publisher = make_publisher(config_);
  ASSERT_TRUE(publisher);
  wire::WeightSource source = (*publisher)->source().value();
  EXPECT_EQ(source, wire::WeightSource{.host = host_identity()});
  const auto reader = subscriber(source);
  ASSERT_TRUE((*publisher)->publish(v(1), arena_of(1), kPatience));
  EXPECT_EQ(fetch(*reader, v(1)).value(), arena_of(1)) << "from the shared memory of this host";
  source.host = "another host";
  std::vector<std::byte> buffer(kArenaBytes);
  const auto refused = subscriber(source)->begin(v(1), buffer);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "the learner serves weights to its own host alone");
  EXPECT_NE(refused.error().help.find("--bind"), std::string::npos);
}

}  // namespace
}  // namespace tandem::weights
