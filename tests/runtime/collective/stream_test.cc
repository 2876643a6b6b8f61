#include "runtime/collective/stream.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/rng.h"
#include "runtime/collective/connection.h"

namespace tandem::collective {
namespace {

constexpr Duration kLong = std::chrono::seconds(30);

StreamKeys keys() {
  return {.sending = seal_key("secret", "there"), .receiving = seal_key("secret", "back")};
}
StreamKeys keys_of_other_end() {
  return {.sending = keys().receiving, .receiving = keys().sending};
}

std::pair<OwnedFd, OwnedFd> make_pair_of_sockets() {
  int ends[2] = {-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
  return {OwnedFd(ends[0]), OwnedFd(ends[1])};
}

struct Ends {
  Stream here, there;

  static Ends sealed() {
    auto [one, other] = make_pair_of_sockets();
    Ends ends{Stream(std::move(one)), Stream(std::move(other))};
    ends.here.seal(keys());
    ends.there.seal(keys_of_other_end());
    return ends;
  }
};

std::vector<std::byte> random_bytes(std::size_t count, Rng& rng) {
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(rng.next());
  return bytes;
}

// Sends pieces of any size, and reads them in pieces of other sizes.
TEST(Stream, GS_1_sealed_bytes_arrive_as_they_were_sent_however_they_are_cut) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Ends ends = Ends::sealed();
    Rng content(seed);
    const std::vector<std::byte> all = random_bytes(1'000'000 + content.below(1000), content);
    std::thread sender([&] {
      Rng rng(seed + 100);
      for (std::span<const std::byte> rest = all; !rest.empty();) {
        std::span<const std::byte> piece =
            rest.first(std::min<std::size_t>(rest.size(), 1 + rng.below(200'000)));
        rest = rest.subspan(piece.size());
        for (Transfer step = Transfer::kWouldBlock; step != Transfer::kDone;) {
          step = ends.here.send_some(piece);
          ASSERT_NE(step, Transfer::kClosed);
        }
      }
    });
    Rng rng(seed + 200);
    std::vector<std::byte> got(all.size());
    for (std::span<std::byte> rest = got; !rest.empty();) {
      const auto piece = rest.first(std::min<std::size_t>(rest.size(), 1 + rng.below(100'000)));
      ASSERT_EQ(ends.there.receive_all(piece, steady_now() + kLong), Transfer::kDone);
      rest = rest.subspan(piece.size());
    }
    sender.join();
    EXPECT_TRUE(got == all);
  }
}

// What the network sees of a text.
std::string on_the_wire(const std::string& text, bool sealed) {
  auto [one, other] = make_pair_of_sockets();
  Stream stream(std::move(one));
  if (sealed) stream.seal(keys());
  std::span<const std::byte> bytes = std::as_bytes(std::span(text));
  EXPECT_EQ(stream.send_some(bytes), Transfer::kDone);
  std::string seen(text.size() + 1000, '\0');
  const ssize_t got = ::recv(other.get(), seen.data(), seen.size(), 0);
  EXPECT_GT(got, 0);
  seen.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  return seen;
}

TEST(Stream, the_network_reads_only_what_is_not_sealed) {
  const std::string secret = "the gradients of a learner";
  EXPECT_EQ(on_the_wire(secret, false), secret);
  const std::string sealed = on_the_wire(secret, true);
  EXPECT_EQ(sealed.size(), sizeof(std::uint32_t) + secret.size() + kSealBytes);
  EXPECT_EQ(sealed.find("gradients"), std::string::npos);
}

// The outcome where the network passes on `wire` instead of what was sent.
Transfer received(const std::string& wire, std::size_t bytes) {
  auto [one, other] = make_pair_of_sockets();
  Stream stream(std::move(one));
  stream.seal(keys_of_other_end());
  EXPECT_EQ(::send(other.get(), wire.data(), wire.size(), 0), static_cast<ssize_t>(wire.size()));
  std::vector<std::byte> got(bytes);
  std::span<std::byte> rest = got;
  return stream.receive_some(rest);
}

TEST(Stream, GS_1_a_connection_in_which_anything_was_changed_ends) {
  const std::string text = "the gradients of a learner";
  const std::string wire = on_the_wire(text, true);
  EXPECT_EQ(received(wire, text.size()), Transfer::kDone);
  EXPECT_EQ(received(wire + wire, 2 * text.size()), Transfer::kClosed) << "repeated";
  for (std::size_t at = 0; at < wire.size(); ++at) {
    std::string changed = wire;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    // A record that says to be longer is waited for.
    const Transfer step = received(changed, text.size());
    EXPECT_TRUE(step == Transfer::kClosed || (at <= 1 && step == Transfer::kWouldBlock)) << at;
  }
  std::string too_long = wire;
  too_long[3] = '\x7f';
  EXPECT_EQ(received(too_long, text.size()), Transfer::kClosed);
  EXPECT_EQ(received(std::string(64, '\0'), text.size()), Transfer::kClosed);
}

TEST(Stream, the_end_of_a_connection_is_told_behind_what_came_before_it) {
  Ends ends = Ends::sealed();
  const std::string text = "the last words";
  std::span<const std::byte> bytes = std::as_bytes(std::span(text));
  ASSERT_EQ(ends.here.send_some(bytes), Transfer::kDone);
  ends.here = Stream();
  std::string got(text.size(), ' ');
  EXPECT_EQ(ends.there.receive_all(std::as_writable_bytes(std::span(got)), steady_now() + kLong),
            Transfer::kDone);
  EXPECT_EQ(got, text);
  char more = 0;
  EXPECT_EQ(
      ends.there.receive_all(std::as_writable_bytes(std::span(&more, 1)), steady_now() + kLong),
      Transfer::kClosed);
}

}  // namespace
}  // namespace tandem::collective
