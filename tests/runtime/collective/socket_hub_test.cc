// Rank 0's side of the socket collective against a peer that is no rank of ours, but knows how to
// speak like one.
#include "runtime/collective/socket_hub.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <utility>
#include <vector>

#include "runtime/collective/connection.h"

namespace tandem::collective {
namespace {

constexpr Duration kEnough = std::chrono::seconds(60);  // no wait of the test lasts as long

// Rank 0 has more to send than the connection holds, and no rank reads.
TEST(SocketHub, ARankThatStopsSendingAndDoesNotReadIsGone) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
  std::vector<Stream> peers;
  peers.emplace_back(OwnedFd(ends[0]));
  const OwnedFd peer(ends[1]);
  std::vector<std::byte> bytes(std::size_t{16} << 20);

  FrameHeader header;
  header.magic = kFrameMagic;
  header.call = {.operation = Operation::kBroadcast, .root = 0, .bytes = bytes.size()};
  header.sequence = 1;
  std::span<const std::byte> agreed = bytes_of(std::as_const(header));
  ASSERT_EQ(send_some(peer.get(), agreed), Transfer::kDone);
  ASSERT_EQ(::shutdown(peer.get(), SHUT_WR), 0);

  SocketHub hub(std::move(peers), {.size = 2, .secret = {}});
  const Result<void> sent = hub.broadcast(bytes, 0, kEnough);
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().message, rank_gone(header.call, 1).message);
}

}  // namespace
}  // namespace tandem::collective
