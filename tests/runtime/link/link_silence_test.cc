// Peers that fall silent: when they go down, and what of their session lasts (LK-5).
//
// Tests runtime/link/link.h, runtime/link/link_traffic.h.
#include <gtest/gtest.h>

#include <future>
#include <optional>
#include <thread>
#include <zmq.hpp>

#include "runtime/link/link_traffic.h"
#include "runtime/wire/codec.h"
#include "tests/runtime/link/link_ends.h"

namespace tandem::link {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A client that introduces itself, and says nothing more but what a test sends.
class Mute {
 public:
  Mute(const Server& server, bool remote) {
    socket_.set(zmq::sockopt::linger, 0);
    socket_.set(zmq::sockopt::routing_id, "mute#1");
    socket_.set(zmq::sockopt::rcvtimeo, static_cast<int>(milliseconds(kPatience).count()));
    socket_.connect(to_string(server.link->endpoint()));
    const Introduction who{.hello = {.name = "mute", .incarnation = {1}, .remote = remote},
                           .attempt = 1};
    send(PacketKind::kHello, wire::encode(who));
  }
  void send(PacketKind kind, const std::string& body) {
    socket_.send(zmq::buffer(packet_of(kind, body)), zmq::send_flags::none);
  }
  // The packets up to the first that has these bytes; empty where none came.
  std::vector<std::string> hear_until(const std::string& bytes) {
    std::vector<std::string> heard;
    for (zmq::message_t packet; socket_.recv(packet);) {
      heard.push_back(packet.to_string());
      if (heard.back().find(bytes) != std::string::npos) return heard;
    }
    return {};
  }

 private:
  zmq::context_t context_;
  zmq::socket_t socket_{context_, zmq::socket_type::dealer};
};

class SilentPeers : public testing::TestWithParam<bool> {};  // whether they came by TCP

TEST_P(SilentPeers, go_down_after_the_time_of_their_kind_of_socket) {
  LinkOptions options = quick();
  (GetParam() ? options.remote_peer_timeout : options.peer_timeout) = milliseconds(300);
  Server server(here(), 1, options);
  const Mute mute(server, GetParam());
  ASSERT_TRUE(server.log.wait([](Log& log) { return log.ups_ == 1; }));
  ASSERT_TRUE(server.log.wait_down(1));
  EXPECT_EQ(server.log.downs()[0].reason, Down::Reason::kSilent);
}

INSTANTIATE_TEST_SUITE_P(Link, SilentPeers, testing::Bool());

// A node that is cut off, or hangs, is known to be within five seconds. A heartbeat is left for the
// way to those who ask.
TEST(Link, silence_of_either_kind_of_peer_is_told_within_five_seconds) {
  const LinkOptions options;
  for (const Duration silence_max : {options.peer_timeout, options.remote_peer_timeout})
    EXPECT_LE(silence_max + kLinkTick + options.heartbeat_interval, seconds(5));
}

TEST(Link, LK_5_a_silent_client_by_tcp_keeps_its_session_and_hears_all_when_it_speaks_again) {
  LinkOptions options = quick();
  options.remote_peer_timeout = milliseconds(100);
  options.remote_grace = seconds(60);
  Server server(here(), 1, options);
  Mute mute(server, true);
  const ActorId peer{"mute", {1}};
  ASSERT_TRUE(server.log.wait([](Log& log) { return log.silences_ == std::vector{true}; }));
  EXPECT_TRUE(server.link->status(peer)->silent);
  EXPECT_EQ(server.link->send(peer, "kept for it"), Sent::kAccepted);
  EXPECT_TRUE(server.log.downs().empty());
  mute.send(PacketKind::kHeartbeat, wire::encode(Heartbeat{}));
  ASSERT_TRUE(server.log.wait([](Log& log) { return log.silences_.size() >= 2; }));
  EXPECT_FALSE(mute.hear_until("kept for it").empty());
  EXPECT_TRUE(server.log.downs().empty());
}

// As libzmq ends the connections of a network that is cut, on either side.
TEST(Link, LK_5_a_connection_that_ends_in_silence_is_not_the_end_of_its_client) {
  LinkOptions options = quick();
  options.remote_peer_timeout = milliseconds(2000);
  options.remote_grace = seconds(60);
  Server server(here(), 1, options);
  std::optional<Mute> mute(std::in_place, server, true);
  const ActorId peer{"mute", {1}};
  ASSERT_TRUE(server.log.wait([](Log& log) { return log.ups_ == 1; }));
  const Time heard = server.link->status(peer)->last_heard;
  while (steady_now() - heard < milliseconds(1500)) std::this_thread::yield();
  mute.reset();
  ASSERT_TRUE(
      server.log.wait([](Log& log) { return !log.silences_.empty() || !log.downs_.empty(); }));
  EXPECT_TRUE(server.log.downs().empty());
}

// Also where silence is told before that end is: the process is not waited for as a silent one.
TEST(Link, LK_5_a_client_that_ends_its_connection_while_it_is_heard_has_ended) {
  LinkOptions options = quick();
  options.remote_peer_timeout = milliseconds(2000);
  options.remote_disconnect_grace = milliseconds(3000);
  options.remote_grace = seconds(60);
  Server server(here(), 1, options);
  std::optional<Mute> mute(std::in_place, server, true);
  ASSERT_TRUE(server.log.wait([](Log& log) { return log.ups_ == 1; }));
  mute.reset();
  ASSERT_TRUE(
      server.log.wait([](Log& log) { return !log.silences_.empty() || !log.downs_.empty(); }));
  ASSERT_EQ(server.log.downs().size(), 1u);
  EXPECT_EQ(server.log.downs()[0].reason, Down::Reason::kDisconnected);
}

// The server says nothing to a client that it does not hear, though the client may hear it: else
// the client would work on for ever while others take its place.
TEST(Link, LK_5_a_silent_client_is_told_nothing) {
  LinkOptions options = quick();
  options.remote_peer_timeout = milliseconds(100);
  options.remote_grace = seconds(60);
  Server server(here(), 1, options);
  Mute mute(server, true);
  const ActorId peer{"mute", {1}};
  ASSERT_TRUE(server.log.wait([](Log& log) { return log.silences_ == std::vector{true}; }));
  const std::uint64_t sent = server.link->status(peer)->session.packets_sent;
  EXPECT_EQ(server.link->send(peer, "first"), Sent::kAccepted);
  server.io.run([] {});  // the pump of send() is behind it
  EXPECT_EQ(server.link->status(peer)->session.packets_sent, sent);
  mute.send(PacketKind::kHeartbeat, wire::encode(Heartbeat{}));
  EXPECT_FALSE(mute.hear_until("first").empty());
}

// A thread of the server that stands still is what a cut network is for its clients.
TEST(Link, LK_5_a_cut_off_client_goes_on_within_its_grace_and_goes_down_after_it) {
  const auto trial = [](Duration peer_timeout) -> std::string {
    LinkOptions options = quick();
    options.remote_peer_timeout = peer_timeout;
    options.remote_grace = 8 * peer_timeout;
    const GuardedPort port;
    Server server(port.binding(), 1, options);
    Client client({server.link->endpoint(), port.client}, actor(1), options);
    EXPECT_TRUE(client.log.wait_up(1));
    const auto stall = [&](Duration time) {
      server.io.post([never = std::make_shared<std::promise<void>>(), time] {
        never->get_future().wait_for(time);
      });
    };
    stall(3 * peer_timeout);
    client.log.wait([](Log& log) { return !log.silences_.empty() || !log.downs_.empty(); });
    if (client.link.send("from the silence") != Sent::kAccepted) return "it takes nothing";
    if (!server.log.wait_parcels(1)) return "nothing goes on";
    if (!client.log.downs().empty()) return "down: " + render(client.log.downs()[0].error);
    stall(20 * peer_timeout);
    EXPECT_TRUE(client.log.wait_down(1));
    EXPECT_EQ(client.log.downs()[0].reason, Down::Reason::kSilent);
    EXPECT_TRUE(server.log.downs().empty()) << "it waits longer";
    return "";
  };
  EXPECT_EQ("", with_growing_patience(trial));
}

}  // namespace
}  // namespace tandem::link
