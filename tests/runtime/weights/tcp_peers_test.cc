// Weights over TCP against peers that have the keys and send any message: subscribers that abuse a
// publisher (TW-3), and publishers that send bytes that were not published (WT-1, TW-1).
//
// Tests runtime/weights/tcp_server.h, runtime/weights/fetch_window.h.
#include <gtest/gtest.h>

#include <atomic>
#include <deque>

#include "runtime/base/digest.h"
#include "runtime/link/zmq_socket.h"
#include "runtime/weights/tcp_messages.h"
#include "runtime/wire/codec.h"
#include "tests/runtime/weights/tcp_weights.h"

namespace tandem::weights {
namespace {

// A subscriber that has the keys and sends any message.
class Stranger {
 public:
  Stranger(const wire::WeightSource& source, const std::string& id) {
    const link::CurveClient keys =
        link::parse_curve_client(source.server_key + "\n" + source.client_key + "\n").value();
    io_.run([&] {
      socket_ = std::make_unique<link::ZmqSocket>(
          io_, zmq::socket_type::dealer,
          link::ZmqOptions{.message_bytes_max = 2 << 20, .queue_messages = 10'000});
      socket_->connect({endpoint_of(source), keys}, id);
      socket_->start([this](std::string_view, std::span<zmq::message_t>) { ++answers_; },
                     [this] { return flush(); });
    });
  }
  ~Stranger() {
    io_.run([&] { socket_.reset(); });
  }
  void say(std::string message, std::string body = {}) {
    io_.run([&] {
      said_.emplace_back(std::move(message), std::move(body));
      socket_->pump();
    });
  }
  void say(const WeightRequest& request) { say(wire::encode(request)); }
  int answers() const { return answers_; }

 private:
  bool flush() {
    bool wrote = false;
    while (!said_.empty() &&
           socket_->write({}, said_.front().first, said_.front().second) == link::Wrote::kSent) {
      said_.pop_front();
      wrote = true;
    }
    return wrote;
  }

  link::IoThread io_{"stranger"};
  std::unique_ptr<link::ZmqSocket> socket_;
  std::deque<std::pair<std::string, std::string>> said_;
  std::atomic<int> answers_ = 0;
};

TEST_F(TcpWeights, TW3WhoLeavesTheProtocolIsNotAnsweredAndNobodyElseFeelsIt) {
  config_.slots = 2;
  const wire::WeightSource source = start();
  const std::uint64_t sum = publish(1).value().checksum;
  const WeightFetch good{.copy = 1, .version = v(1), .checksum = sum, .offset = 0, .bytes = 100};
  const auto spoilt = [&](const std::function<void(WeightFetch&)>& spoil) {
    WeightFetch bad = good;
    spoil(bad);
    return wire::encode(WeightRequest(bad));
  };
  const std::vector<std::pair<std::string, std::string>> abuses = {
      {"garbage", {}},
      {std::string(10'000, '\xc1'), {}},
      {wire::encode(WeightRequest(good)), "and a body"},
      {wire::encode(WeightReply(WeightGone{.copy = 1})) + "x", {}},
      {spoilt([](WeightFetch& f) { f.offset = kArenaBytes - 99; }), {}},
      {spoilt([](WeightFetch& f) { f.offset = kArenaBytes + 1; }), {}},
      {spoilt([](WeightFetch& f) { f.offset = ~0ull; }), {}},
      {spoilt([](WeightFetch& f) { f.bytes = 0; }), {}},
      {spoilt([](WeightFetch& f) { f.bytes = ~0ull; }), {}},
      {spoilt([](WeightFetch& f) { f.bytes = kWeightChunkBytesMax + 1; }), {}},
      {spoilt([](WeightFetch& f) { f.version = v(2); }), {}}};  // within copy 1
  for (std::size_t i = 0; i < abuses.size(); ++i) {
    SCOPED_TRACE(i);
    Stranger stranger(source, "stranger " + std::to_string(i));
    stranger.say(good);
    ASSERT_TRUE(comes_true([&] { return stranger.answers() == 1; }));
    stranger.say(abuses[i].first, abuses[i].second);
    stranger.say(WeightWatch{.probe = 1, .copy = 1});
    const auto reader = subscriber(source);
    ASSERT_TRUE(comes(*reader, v(1)));
    EXPECT_EQ(fetch(*reader, v(1)).value(), arena_of(1));
    EXPECT_EQ(stranger.answers(), 1);
  }
  // None of the subscribers holds the version any more.
  for (std::int64_t version = 2; version <= 5; ++version) ASSERT_TRUE(publish(version));
}

TEST_F(TcpWeights, WhatIsNotOfferedIsGoneAndHeldByNobody) {
  config_.slots = 2;
  const wire::WeightSource source = start();
  const std::uint64_t sum = publish(1).value().checksum;
  ASSERT_TRUE(publish(2));
  Stranger stranger(source, "stranger");
  std::uint64_t copy = 0;
  for (const auto& [version, checksum] : std::vector<std::pair<PolicyVersion, std::uint64_t>>{
           {v(7), sum}, {v(-1), sum}, {v(1), sum + 1}, {v(2), sum}}) {
    const int before = stranger.answers();
    stranger.say(WeightFetch{
        .copy = ++copy, .version = version, .checksum = checksum, .offset = 0, .bytes = 1});
    ASSERT_TRUE(comes_true([&] { return stranger.answers() > before; }));
  }
  for (std::int64_t version = 3; version <= 6; ++version) ASSERT_TRUE(publish(version));
}

TEST_F(TcpWeights, TW3AFloodEndsWhoSendsIt) {
  config_.slots = 2;
  const wire::WeightSource source = start();
  const std::uint64_t sum = publish(1).value().checksum;
  Stranger flood(source, "flood");
  flood.say(WeightFetch{.copy = 1, .version = v(1), .checksum = sum, .offset = 0, .bytes = 1});
  ASSERT_TRUE(comes_true([&] { return flood.answers() == 1; }));
  ASSERT_TRUE(publish(2));
  // This subscriber holds version 1, and asks for far more at a time than it may.
  for (int i = 0; i < 5000; ++i) {
    flood.say(WeightFetch{
        .copy = 1, .version = v(1), .checksum = sum, .offset = 0, .bytes = kWeightChunkBytesMax});
  }
  EXPECT_TRUE(publish(3)) << "the flood still holds version 1";
  const auto reader = subscriber(source);
  ASSERT_TRUE(comes(*reader, v(3)));
  EXPECT_EQ(fetch(*reader, v(3)).value(), arena_of(3));
}

TEST_F(TcpWeights, MoreSubscribersThanThereMayBeAreTurnedAway) {
  const wire::WeightSource source = start();
  ASSERT_TRUE(publish(1));
  const auto asks = [&](int number) {
    auto one = std::make_unique<Stranger>(source, "subscriber " + std::to_string(number));
    one->say(WeightWatch{.probe = 1});
    return one;
  };
  for (int i = 0; i < 256; ++i) {
    const auto one = asks(i);
    ASSERT_TRUE(comes_true([&] { return one->answers() == 1; })) << i;
  }
  const auto newcomer = asks(256);
  const auto known = asks(0);
  ASSERT_TRUE(comes_true([&] { return known->answers() == 1; }));
  EXPECT_EQ(newcomer->answers(), 0);
}

// A publisher of the test's own, which has the keys and answers with any message.
class Forger {
 public:
  using Answer = std::function<std::vector<std::pair<WeightReply, std::string>>(WeightRequest)>;

  explicit Forger(Answer answer) : answer_(std::move(answer)) {
    const link::CurveKeys own = link::make_curve_keys(), client = link::make_curve_keys();
    io_.run([&] {
      socket_ = std::make_unique<link::ZmqSocket>(
          io_, zmq::socket_type::router,
          link::ZmqOptions{.message_bytes_max = 2 << 20, .queue_messages = 1000});
      const auto at =
          socket_->bind({{}, link::CurveServer{own.secret_key, {client.public_key}}}).value();
      source_ = {.host = "elsewhere",
                 .endpoint = to_string(at),
                 .server_key = own.public_key,
                 .client_key = client.secret_key};
      socket_->start(
          [this](std::string_view from, std::span<zmq::message_t> parts) {
            const auto request = wire::decode<WeightRequest>(parts[0].to_string_view());
            ASSERT_TRUE(request);
            for (const auto& [reply, body] : answer_(*request))
              socket_->write(from, wire::encode(reply), body);
          },
          [] { return false; });
    });
  }
  ~Forger() {
    io_.run([&] { socket_.reset(); });
  }
  const wire::WeightSource& source() const { return source_; }

 private:
  const Answer answer_;
  link::IoThread io_{"forger"};
  std::unique_ptr<link::ZmqSocket> socket_;
  wire::WeightSource source_;
};

class ForgedWeights : public TcpWeights {
 protected:
  // Speaks the protocol, except that `spoil` may change its replies.
  using Spoil = std::function<void(WeightReply&, std::string& body)>;
  std::unique_ptr<Forger> forger(Spoil spoil) const {
    return std::make_unique<Forger>([this, spoil](const WeightRequest& request) {
      std::vector<std::pair<WeightReply, std::string>> answers;
      if (const auto* watch = std::get_if<WeightWatch>(&request)) {
        answers.push_back({WeightOffers{.probe = watch->probe,
                                        .publisher_life = 1,
                                        .arena_bytes = kArenaBytes,
                                        .layout_hash = 17,
                                        .versions = {{v(1), checksum64(arena_)}}},
                           {}});
      } else {
        const auto& fetch = std::get<WeightFetch>(request);
        answers.push_back(
            {WeightChunk{.copy = fetch.copy, .offset = fetch.offset},
             {reinterpret_cast<const char*>(arena_.data()) + fetch.offset, fetch.bytes}});
      }
      for (auto& [reply, body] : answers) spoil(reply, body);
      return answers;
    });
  }
  const std::vector<std::byte> arena_ = arena_of(1);
};

TEST_F(ForgedWeights, WT1OtherBytesThanThePublishedOnesAreNotInstalled) {
  const auto honest = forger([](WeightReply&, std::string&) {});
  const auto damaging = forger([](WeightReply& reply, std::string& body) {
    const auto* chunk = std::get_if<WeightChunk>(&reply);
    if (chunk != nullptr && chunk->offset > kArenaBytes / 2) body[body.size() / 2] ^= 1;
  });
  const auto reader = subscriber(damaging->source());
  ASSERT_TRUE(comes(*reader, v(1)));
  const auto damaged = fetch(*reader, v(1));
  ASSERT_FALSE(damaged);
  EXPECT_NE(damaged.error().message.find("checksum"), std::string::npos) << damaged.error().message;
  EXPECT_FALSE(reader->installed());
  reader->look_at(honest->source());
  const auto arena = fetch(*reader, v(1));
  ASSERT_TRUE(arena) << render(arena.error());
  EXPECT_EQ(*arena, arena_);
}

TEST_F(ForgedWeights, TW1AnswersThatWereNotAskedForChangeNothing) {
  std::uint64_t answers = 0;
  const auto forged = forger([&](WeightReply& reply, std::string& body) {
    auto* chunk = std::get_if<WeightChunk>(&reply);
    if (chunk == nullptr) return;
    ++answers;
    if (answers == 2) chunk->copy += 1;
    if (answers == 7) chunk->offset += 1;
    if (answers == 15) body.pop_back();
    if (answers == 22) body.append(3 << 10, 'x');
  });
  const auto reader = subscriber(forged->source());
  ASSERT_TRUE(comes(*reader, v(1)));
  const auto arena = fetch(*reader, v(1));
  ASSERT_TRUE(arena) << render(arena.error());
  EXPECT_EQ(*arena, arena_);
}

TEST_F(ForgedWeights, AnotherLayoutIsRefusedAndAVersionThatGoesIsNotFound) {
  const auto other = forger([](WeightReply& reply, std::string&) {
    if (auto* offers = std::get_if<WeightOffers>(&reply)) offers->layout_hash = 18;
  });
  const auto reader = subscriber(other->source());
  EXPECT_TRUE(comes_true([&] { return !reader->newest(); }));
  EXPECT_EQ(fetch(*reader, v(1)).error().code, ErrorCode::kInvalid);

  const auto gone = forger([](WeightReply& reply, std::string& body) {
    if (const auto* chunk = std::get_if<WeightChunk>(&reply)) {
      reply = WeightGone{.copy = chunk->copy};
      body.clear();
    }
  });
  reader->look_at(gone->source());
  ASSERT_TRUE(comes(*reader, v(1)));
  EXPECT_EQ(fetch(*reader, v(1)).error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace tandem::weights
