// Links over real TCP loopback: LK-1 … LK-3, reconnects, incarnations, hangs, shutdown.
#include "runtime/link/link.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <future>
#include <map>
#include <mutex>
#include <thread>
#include <zmq.hpp>

#include "runtime/link/link_traffic.h"
#include "runtime/wire/codec.h"
#include "tests/runtime/link/bindings.h"
#include "tests/runtime/link/link_ends.h"
#include "tests/runtime/patience.h"

namespace tandem::link {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Link, introduces_both_sides_and_carries_frames_both_ways) {
  Server server;
  Client client({server.link->endpoint(), {}});
  ASSERT_TRUE(server.log.wait_up(1));
  ASSERT_TRUE(client.log.wait_up(1));
  EXPECT_EQ(server.log.up_.begin()->second.opaque, "cpus=2");
  EXPECT_EQ(server.log.up_.begin()->second.rank, 2);
  EXPECT_EQ(server.log.up_.begin()->second.pid, getpid());
  EXPECT_EQ(client.log.up_.begin()->first.name, "controller");
  const ActorId peer{"job/rollout/0", {1}};
  EXPECT_EQ(client.link.send("up"), Sent::kAccepted);
  EXPECT_EQ(server.link->send(peer, "down"), Sent::kAccepted);
  ASSERT_TRUE(server.log.wait_parcels(1));
  ASSERT_TRUE(client.log.wait_parcels(1));
  EXPECT_EQ(server.log.parcels()[0], "up");
  EXPECT_EQ(client.log.parcels()[0], "down");
  EXPECT_EQ(server.link->send({"job/rollout/0", {2}}, "x"), Sent::kGone);
  EXPECT_EQ(server.link->send({"nobody", {1}}, "x"), Sent::kGone);
}

TEST(Link, goes_by_an_address_of_ipv6_as_well) {
  if (!way_to({"::1", 1})) GTEST_SKIP() << "no IPv6 here";
  const GuardedPort port;
  Binding place = port.binding();
  place.at.host = "::1";
  Server server(place);
  EXPECT_EQ(server.link->endpoint().host, "::1");
  EXPECT_NE(server.link->endpoint().port, 0);
  Client client({server.link->endpoint(), port.client});
  ASSERT_TRUE(server.log.wait_up(1));
  ASSERT_TRUE(client.log.wait_up(1));
  EXPECT_EQ(client.link.send("up"), Sent::kAccepted);
  ASSERT_TRUE(server.log.wait_parcels(1));
}

TEST(Link, a_hundred_thousand_frames_arrive_in_order) {
  Server server;
  Client client({server.link->endpoint(), {}});
  ASSERT_TRUE(client.log.wait_up(1));
  constexpr int kFrames = 100'000;
  for (int i = 0; i < kFrames; ++i) {
    while (client.link.send(std::to_string(i)) == Sent::kFull) std::this_thread::yield();
  }
  ASSERT_TRUE(server.log.wait_parcels(kFrames));
  const auto parcels = server.log.parcels();
  ASSERT_EQ(parcels.size(), static_cast<std::size_t>(kFrames));
  for (int i = 0; i < kFrames; ++i)
    ASSERT_EQ(parcels[static_cast<std::size_t>(i)], std::to_string(i));
  const auto status = server.link->status({"job/rollout/0", {1}});
  ASSERT_TRUE(status);
  EXPECT_LT(status->session.packets_received, kFrames / 2u);  // gathered, not one by one
}

TEST(Link, a_full_mailbox_slows_the_sender_and_loses_nothing) {
  LinkOptions options = quick();
  options.session.queue_frames_max = 64;
  options.session.window_frames_max = 16;
  Server server(here(), 1, options);
  Client client({server.link->endpoint(), {}}, actor(1), options);
  ASSERT_TRUE(client.log.wait_up(1));
  server.log.set_mailbox_room(5);
  int accepted = 0;
  for (Sent sent = Sent::kAccepted; sent == Sent::kAccepted;) {
    sent = client.link.send(std::to_string(accepted));
    if (sent == Sent::kAccepted) ++accepted;
    if (sent == Sent::kFull && accepted < 64) sent = Sent::kAccepted;
  }
  ASSERT_TRUE(server.log.wait_parcels(5));
  EXPECT_LE(accepted, 64 + 5);
  server.log.set_mailbox_room(1000);
  ASSERT_TRUE(server.log.wait_parcels(static_cast<std::size_t>(accepted)));
  const auto parcels = server.log.parcels();
  for (std::size_t i = 0; i < parcels.size(); ++i) EXPECT_EQ(parcels[i], std::to_string(i));
}

TEST(Link, a_restarted_server_with_a_higher_epoch_is_found_again) {
  auto first = std::make_unique<Server>();
  const Endpoint at = first->link->endpoint();
  Client client({at, {}});
  ASSERT_TRUE(client.log.wait_up(1));
  first.reset();
  ASSERT_TRUE(client.log.wait_down(1));
  EXPECT_EQ(client.link.send("x"), Sent::kGone);
  Server second({at, {}}, 2);
  ASSERT_TRUE(client.log.wait_up(1));
  EXPECT_EQ(client.log.up_.begin()->first.incarnation, Incarnation{2});
  EXPECT_EQ(client.link.send("again"), Sent::kAccepted);
  ASSERT_TRUE(second.log.wait_parcels(1));
}

TEST(Link, LK_2_a_newer_incarnation_takes_over_and_the_older_one_is_fenced) {
  Server server;
  Client old({server.link->endpoint(), {}}, actor(1));
  ASSERT_TRUE(old.log.wait_up(1));
  Client fresh({server.link->endpoint(), {}}, actor(2));
  ASSERT_TRUE(fresh.log.wait_up(1));
  ASSERT_TRUE(old.log.wait_down(1));
  EXPECT_EQ(old.log.downs()[0].reason, Down::Reason::kFenced);
  ASSERT_TRUE(server.log.wait_down(1));
  EXPECT_EQ(server.log.downs()[0].reason, Down::Reason::kSuperseded);

  Client late({server.link->endpoint(), {}}, actor(1));  // comes back from the dead
  ASSERT_TRUE(late.log.wait_down(1));
  EXPECT_EQ(late.log.downs()[0].reason, Down::Reason::kFenced);
  const Time end = steady_now() + kPatience;  // it is counted once it is told
  while (server.link->counters().hellos_refused == 0 && steady_now() < end) sched_yield();
  EXPECT_GE(server.link->counters().hellos_refused, 1u);
  EXPECT_TRUE(server.link->status({"job/rollout/0", {2}}));
}

TEST(Link, a_fenced_life_is_over_and_the_next_one_may_come) {
  Server server;
  Client client({server.link->endpoint(), {}}, actor(4));
  ASSERT_TRUE(server.log.wait_up(1));
  ASSERT_TRUE(client.log.wait_up(1));
  server.link->fence({"job/rollout/0", {4}});
  ASSERT_TRUE(client.log.wait_down(1));
  EXPECT_EQ(client.log.downs()[0].reason, Down::Reason::kFenced);
  ASSERT_TRUE(server.log.wait_down(1));
  Client next({server.link->endpoint(), {}}, actor(5));
  ASSERT_TRUE(next.log.wait_up(1));
}

TEST(Link, another_build_is_refused_with_an_error_that_says_so) {
  Hello ours;
  ours.build = "aaa";
  Server server(here(), 1, quick(), ours);
  Hello theirs = actor(1);
  theirs.build = "bbb";
  Client client({server.link->endpoint(), {}}, theirs);
  ASSERT_TRUE(client.log.wait_down(1));
  const Down down = client.log.downs()[0];
  EXPECT_EQ(down.reason, Down::Reason::kRefused);
  EXPECT_NE(down.error.message.find("'bbb'"), std::string::npos) << down.error.message;
  EXPECT_NE(down.error.message.find("'aaa'"), std::string::npos) << down.error.message;
}

TEST(Link, PB_1_another_build_of_one_version_is_refused_by_name_with_both) {
  Hello ours;
  ours.program = {.version = "tandem 0.1.0", .id = "1a2b3c"};
  Server server(here(), 1, quick(), ours);
  Hello theirs = actor(1);
  theirs.program = {.version = "tandem 0.1.0", .id = "9f8e7d"};
  Client client({server.link->endpoint(), {}}, theirs);
  ASSERT_TRUE(client.log.wait_down(1));
  const Down down = client.log.downs()[0];
  EXPECT_EQ(down.reason, Down::Reason::kRefused);
  for (const char* const part :
       {"controller is tandem 0.1.0 build 1a2b3c", "job/rollout/0 is tandem 0.1.0 build 9f8e7d"})
    EXPECT_NE(down.error.message.find(part), std::string::npos) << down.error.message;
  theirs.program = ours.program;
  Client same({server.link->endpoint(), {}}, theirs);
  EXPECT_TRUE(same.log.wait_up(1));
}

// Whatever another version writes into its introduction, its user is told why it does not come in.
TEST(Link, an_introduction_that_cannot_be_read_is_refused_with_an_error) {
  Server server;
  zmq::context_t context;
  zmq::socket_t dealer(context, zmq::socket_type::dealer);
  const Time end = steady_now() + kPatience;
  dealer.set(zmq::sockopt::routing_id, "node/gpu-3@7#1~00000000");
  dealer.set(zmq::sockopt::rcvtimeo, static_cast<int>(kPatience / milliseconds(1)));
  dealer.connect(to_string(server.link->endpoint()));
  const std::string hello = packet_of(PacketKind::kHello, "of another version");
  ASSERT_TRUE(dealer.send(zmq::buffer(hello)));
  zmq::message_t answer;
  while (steady_now() < end && dealer.recv(answer)) {
    const std::string_view packet(answer.data<char>(), answer.size());
    if (packet.empty() || static_cast<PacketKind>(packet.front()) != PacketKind::kRefusal) continue;
    const auto refusal = wire::decode<Refusal>(packet.substr(1));
    ASSERT_TRUE(refusal);
    EXPECT_NE(refusal->error.message.find("another version"), std::string::npos);
    return;
  }
  FAIL() << "no refusal";
}

TEST(Link, LK_2_who_is_not_admitted_evicts_nobody) {
  IoThread io("server");
  Log log;
  LinkCallbacks callbacks = log.callbacks();
  callbacks.admit = [](const Hello& hello) -> Result<void> {
    if (hello.incarnation == Incarnation{1}) return {};
    return Error{ErrorCode::kInvalid, "incarnation 1 is the one that was started"};
  };
  auto server =
      std::move(LinkServer::listen(io, {here()}, controller(1), quick(), callbacks).value());
  server->start();
  Client honest({server->endpoint(), {}});
  ASSERT_TRUE(honest.log.wait_up(1));
  Client forged({server->endpoint(), {}}, actor(~std::uint64_t{0}));
  ASSERT_TRUE(forged.log.wait_down(1));
  const Down down = forged.log.downs()[0];
  EXPECT_EQ(down.reason, Down::Reason::kRefused);
  EXPECT_NE(down.error.message.find("was started"), std::string::npos) << down.error.message;
  EXPECT_TRUE(server->status({"job/rollout/0", {1}}));
  EXPECT_TRUE(log.downs().empty());
  const Time end = steady_now() + kPatience;  // it is counted once it is told
  while (server->counters().hellos_refused == 0 && steady_now() < end) sched_yield();
  EXPECT_GE(server->counters().hellos_refused, 1u);
}

TEST(Link, LK_4_a_refused_frame_ends_its_peer) {
  IoThread io("server");
  Log log;
  LinkCallbacks callbacks = log.callbacks();
  callbacks.on_parcel = [](const ActorId&, std::string& frame) {
    return frame == "wrong" ? Offer::kRefused : Offer::kTaken;
  };
  auto server =
      std::move(LinkServer::listen(io, {here()}, controller(1), quick(), callbacks).value());
  server->start();
  Client client({server->endpoint(), {}});
  ASSERT_TRUE(client.log.wait_up(1));
  for (const char* const frame : {"right", "wrong", "wrong"}) (void)client.link.send(frame);
  ASSERT_TRUE(client.log.wait_down(1));
  EXPECT_EQ(client.log.downs()[0].reason, Down::Reason::kFenced);
  ASSERT_TRUE(log.wait_down(1));
  EXPECT_EQ(log.downs()[0].reason, Down::Reason::kFenced);
  EXPECT_FALSE(server->status({"job/rollout/0", {1}}));
}

TEST(Link, a_busy_port_is_an_error_with_its_address) {
  const GuardedPort port;
  Server server(port.binding());
  Binding taken = port.binding();
  taken.at = server.link->endpoint();
  IoThread io;
  Log log;
  const auto second = LinkServer::listen(io, {taken}, controller(1), quick(), log.callbacks());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().where, to_string(server.link->endpoint()));
  EXPECT_NE(second.error().message.find("in use"), std::string::npos) << second.error().message;
}

TEST(Link, LK_2_another_socket_that_says_to_be_a_peer_that_is_up_disturbs_nothing) {
  Server server;
  Client honest({server.link->endpoint(), {}}, actor(1));
  ASSERT_TRUE(server.log.wait_up(1));
  Client impostor({server.link->endpoint(), {}}, actor(1));
  ASSERT_TRUE(impostor.log.wait([](Log& log) { return !log.downs_.empty(); }));
  EXPECT_EQ(impostor.log.downs()[0].reason, Down::Reason::kRefused);
  zmq::context_t context;
  zmq::socket_t raw(context, zmq::socket_type::dealer);  // its routing id as far as it can be known
  raw.set(zmq::sockopt::linger, 0);
  raw.set(zmq::sockopt::routing_id, "job/rollout/0#1");
  raw.connect(to_string(server.link->endpoint()));
  const Introduction who{.hello = actor(1), .attempt = 9};
  const std::string introduction = packet_of(PacketKind::kHello, wire::encode(who));
  raw.send(zmq::buffer(introduction), zmq::send_flags::none);
  zmq::message_t refusal;
  ASSERT_TRUE(raw.recv(refusal, zmq::recv_flags::none));
  EXPECT_EQ(honest.link.send("still here"), Sent::kAccepted);
  ASSERT_TRUE(server.log.wait_parcels(1));
  EXPECT_TRUE(server.log.downs().empty());
}

TEST(Link, tcp_without_keys_is_refused) {
  IoThread io;
  Log log;
  const auto open = LinkServer::listen(io, {{{}, {}}}, controller(1), quick(), log.callbacks());
  ASSERT_FALSE(open);
  EXPECT_EQ(open.error().code, ErrorCode::kUnauthorised);
}

TEST(Link, tcp_lets_in_who_has_the_key_and_nobody_else) {
  const GuardedPort port;
  Server server(port.binding());
  const Endpoint at = server.link->endpoint();
  CurveClient stranger = port.client;  // knows the server's key, which is no secret
  stranger.own = make_curve_keys();
  CurveClient deceived = port.client;  // expects another server
  deceived.server_key = make_curve_keys().public_key;
  Client unknown({at, stranger}, actor(1)), misled({at, deceived}, actor(2)),
      bare({at, {}}, actor(3));
  Client friendly({at, port.client}, actor(4));
  ASSERT_TRUE(server.log.wait_up(1));
  ASSERT_TRUE(friendly.log.wait_up(1));
  EXPECT_EQ(friendly.link.send("hello"), Sent::kAccepted);
  ASSERT_TRUE(server.log.wait_parcels(1));
  EXPECT_EQ(server.log.up_.begin()->first.incarnation, Incarnation{4});
  EXPECT_TRUE(server.log.up_.begin()->second.remote);
  for (Client* refused : {&unknown, &misled, &bare}) EXPECT_TRUE(refused->log.up_.empty());
  EXPECT_EQ(server.link->peers().size(), 1u);
}

TEST(Link, one_server_listens_to_a_unix_socket_without_keys_and_to_tcp_with_them) {
  const GuardedPort port;
  IoThread io;
  Log log;
  auto server = std::move(LinkServer::listen(io, {here(), port.binding()}, controller(1), quick(),
                                             log.callbacks()))
                    .value();
  server->start();
  ASSERT_EQ(server->endpoints().size(), 2u);
  Client local({server->endpoints()[0], {}}, actor(1));
  ASSERT_TRUE(log.wait_up(1));
  Hello other = actor(1);
  other.name = "job/rollout/1";
  Client remote({server->endpoints()[1], port.client}, other);
  Hello third = actor(1);
  third.name = "job/rollout/2";
  Client bare({server->endpoints()[1], {}}, third);
  ASSERT_TRUE(log.wait_up(2));
  ASSERT_TRUE(remote.log.wait_up(1));
  EXPECT_TRUE(bare.log.up_.empty());
  server->close(Duration::zero());
}

TEST(Link, nothing_happens_before_start) {
  IoThread io("unstarted");
  Log log;
  auto server =
      std::move(LinkServer::listen(io, {here()}, controller(1), quick(), log.callbacks())).value();
  Client client({server->endpoint(), {}});
  LinkClient unstarted(io, {server->endpoint(), {}}, actor(2), quick(), log.callbacks());
  EXPECT_EQ(unstarted.send("x"), Sent::kGone);
  EXPECT_TRUE(unstarted.close(seconds(1)));
  EXPECT_TRUE(server->peers().empty());
  server->start();  // and now the peer that dialled before comes in
  ASSERT_TRUE(log.wait_up(1));
  EXPECT_EQ(server->peers().front().peer.name, "job/rollout/0");
  EXPECT_EQ(server->peers().front().peer.incarnation, Incarnation{1});
}

TEST(Link, a_hung_worker_is_seen_although_its_process_speaks) {
  Progress progress;
  progress.enter("decode", steady_now());
  LinkOptions options = quick();
  options.progress = [&] { return progress.report(); };
  Server server;
  Client client({server.link->endpoint(), {}}, actor(1), options);
  ASSERT_TRUE(server.log.wait_up(1));
  const ActorId peer{"job/rollout/0", {1}};
  const auto status = [&] { return server.link->status(peer).value(); };
  const auto wait_for = [&](auto condition) {
    const Time end = steady_now() + kPatience;
    while (!condition(status())) {
      if (steady_now() > end) return false;
      std::this_thread::yield();
    }
    return true;
  };
  ASSERT_TRUE(wait_for([](const PeerStatus& s) { return s.progress.counter == 1; }));
  progress.beat(steady_now());
  ASSERT_TRUE(wait_for([](const PeerStatus& s) { return s.progress.counter == 2; }));
  EXPECT_EQ(status().progress.pieces, 1u);
  EXPECT_EQ(status().progress.longest, progress.report().longest);
  // No more beats: the heartbeats go on, and the progress grows old.
  EXPECT_TRUE(wait_for([](const PeerStatus& s) {
    return s.last_heard - s.progress_changed > milliseconds(100) &&
           s.progress.since < s.progress_changed && s.progress.phase == "decode";
  }));
}

TEST(Link, what_a_peer_tells_of_its_work_is_checked) {
  std::atomic<bool> forges{true};
  LinkOptions options = quick();
  options.progress = [&] {
    return ProgressReport{.counter = 7,
                          .phase = forges ? "decode\nevent=forged" : "decode",
                          .pieces = 9,
                          .longest = Duration::min(),
                          .still = Duration::max()};
  };
  Server server;
  Client client({server.link->endpoint(), {}}, actor(1), options);
  ASSERT_TRUE(server.log.wait_up(1));
  const auto status = [&] { return server.link->status({"job/rollout/0", {1}}).value(); };
  const auto wait_for = [](const auto& condition) {
    const Time end = steady_now() + kPatience;
    while (!condition() && steady_now() < end) std::this_thread::yield();
    return condition();
  };
  ASSERT_TRUE(wait_for([&] { return server.link->counters().packets_malformed > 0; }));
  EXPECT_NE(status().progress.counter, 7u);
  forges = false;
  ASSERT_TRUE(wait_for([&] { return status().progress.counter == 7; }));
  EXPECT_EQ(status().progress.phase, "decode");
  EXPECT_EQ(status().progress.longest, Duration{0});
  EXPECT_LE(status().progress.still, Duration{steady_now().ns});
}

TEST(Link, a_stalled_thread_does_not_take_its_own_silence_for_its_peers) {
  const auto trial = [](Duration peer_timeout) -> std::string {
    LinkOptions options = quick();
    options.peer_timeout = peer_timeout;
    Server server(here(), 1, options);
    Client client({server.link->endpoint(), {}}, actor(1), options);
    EXPECT_TRUE(client.log.wait_up(1));
    const auto stall = [&] {  // as a stopped process or a paused machine would
      std::promise<void> never;
      never.get_future().wait_for(std::max(2 * peer_timeout, 3 * kStall));
    };
    server.io.post(stall);
    client.io.run(stall);
    for (int i = 0; i < 50; ++i) {
      if (client.link.send("x") != Sent::kAccepted) return "the client takes nothing";
    }
    server.log.wait([](Log& log) { return log.parcels_.size() == 50 || !log.downs_.empty(); });
    if (!client.log.downs().empty()) return "the client's: " + render(client.log.downs()[0].error);
    if (!server.log.downs().empty()) return "the server's: " + render(server.log.downs()[0].error);
    return server.log.parcels().size() == 50 ? "" : "parcels are missing";
  };
  EXPECT_EQ("", with_growing_patience(trial));
}

TEST(Link, signals_that_interrupt_system_calls_do_no_harm) {
  struct sigaction action {};
  action.sa_handler = [](int) {};  // without SA_RESTART
  sigaction(SIGUSR1, &action, nullptr);
  Server server;
  Client client({server.link->endpoint(), {}});
  ASSERT_TRUE(client.log.wait_up(1));
  sigset_t here, before;  // the handler runs on the links' threads
  sigemptyset(&here);
  sigaddset(&here, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &here, &before);
  constexpr std::size_t kFrames = 20'000;
  for (std::size_t i = 0; i < kFrames; ++i) {
    kill(getpid(), SIGUSR1);
    ASSERT_EQ(client.link.send("x"), Sent::kAccepted);
  }
  EXPECT_TRUE(server.log.wait_parcels(kFrames));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  EXPECT_TRUE(client.log.downs().empty());
}

TEST(Link, hostile_bytes_are_counted_and_harm_nobody) {
  Server server;
  Client client({server.link->endpoint(), {}});
  ASSERT_TRUE(server.log.wait_up(1));
  ASSERT_TRUE(client.log.wait_up(1));
  zmq::context_t context;
  zmq::socket_t hostile(context, zmq::socket_type::dealer);
  hostile.set(zmq::sockopt::linger, 0);
  hostile.connect(to_string(server.link->endpoint()));
  for (int kind = 0; kind < 256; ++kind) {
    std::string packet(static_cast<std::size_t>(kind % 90 + 1), static_cast<char>(kind * 7));
    packet[0] = static_cast<char>(kind % 12);
    hostile.send(zmq::buffer(packet), zmq::send_flags::none);
  }
  hostile.send(zmq::message_t(), zmq::send_flags::sndmore);
  hostile.send(zmq::message_t(), zmq::send_flags::sndmore);
  hostile.send(zmq::message_t(), zmq::send_flags::none);
  ASSERT_EQ(client.link.send("still here"), Sent::kAccepted);
  ASSERT_TRUE(server.log.wait_parcels(1));
  const Time end = steady_now() + kPatience;
  while (server.link->counters().packets_malformed < 200 && steady_now() < end) {
    std::this_thread::yield();
  }
  EXPECT_GE(server.link->counters().packets_malformed, 200u);
  EXPECT_TRUE(server.link->status({"job/rollout/0", {1}}));
}

TEST(Link, LK_3_closing_flushes_what_was_accepted) {
  Server server;
  auto client = std::make_unique<Client>(Dial{server.link->endpoint(), {}});
  ASSERT_TRUE(client->log.wait_up(1));
  for (int i = 0; i < 5000; ++i) ASSERT_EQ(client->link.send("x"), Sent::kAccepted);
  EXPECT_TRUE(client->link.close(kPatience));
  EXPECT_EQ(server.log.parcels().size(), 5000u);
  EXPECT_EQ(client->link.send("x"), Sent::kGone);
  client.reset();
  ASSERT_TRUE(server.log.wait_down(1));
  EXPECT_EQ(server.log.downs()[0].reason, Down::Reason::kClosed);
}

TEST(Link, LK_3_a_callback_that_runs_still_sends_while_another_thread_closes) {
  Server server;
  std::promise<void> closing;
  Client client({server.link->endpoint(), {}});
  std::jthread closer;
  const auto close_meanwhile = [&] {
    closer = std::jthread([&] { closing.set_value(), client.link.close(kPatience); });
    closing.get_future().wait();
    for (int i = 0; i < 2000; ++i, std::this_thread::yield())
      ASSERT_EQ(client.link.send("x"), Sent::kAccepted);
  };
  client.log.wait([&](Log& log) { return log.on_parcel = close_meanwhile, true; });
  ASSERT_TRUE(server.log.wait_up(1));
  ASSERT_EQ(server.link->send({"job/rollout/0", {1}}, "question"), Sent::kAccepted);
  EXPECT_TRUE(client.log.wait_parcels(1) && server.log.wait_parcels(2000));
}

// Where a connection is closed whose other side still sends, that side may lose what it has not
// read.
TEST(Link, a_good_bye_reaches_a_client_that_still_sends) {
  for (int round = 0; round < 20; ++round) {
    Server server;
    Client client({server.link->endpoint(), {}});
    ASSERT_TRUE(client.log.wait_up(1));
    const std::jthread sender([&](const std::stop_token& stop) {
      while (!stop.stop_requested()) (void)client.link.send(std::string(1000, 'x'));
    });
    ASSERT_TRUE(server.log.wait_parcels(10));
    server.link->close(kPatience);
    ASSERT_TRUE(client.log.wait_down(1));
    EXPECT_EQ(client.log.downs()[0].reason, Down::Reason::kClosed) << round;
  }
}

TEST(Link, closing_with_nobody_there_or_nobody_taking_does_not_hang) {
  { Client alone({{.path = "/nowhere"}, {}}); }
  Server server;
  Client client({server.link->endpoint(), {}});
  ASSERT_TRUE(client.log.wait_up(1));
  server.log.set_mailbox_room(0);
  ASSERT_EQ(client.link.send("never taken"), Sent::kAccepted);
  EXPECT_FALSE(client.link.close(milliseconds(100)));
}

// GoogleTest runs suites of this name first: the child is forked before any socket exists here.
TEST(LinkDeathTest, a_killed_peer_goes_down) {
  int to_child[2];
  ASSERT_EQ(pipe(to_child), 0);
  const pid_t child = fork();
  if (child == 0) {
    std::string path(kSocketPathMax, '\0');
    const ssize_t got = read(to_child[0], path.data(), path.size());
    if (got <= 0) _exit(1);
    path.resize(static_cast<std::size_t>(got));
    Client client({{.path = path}, {}});
    (void)client.link.send("x");
    while (true) pause();
  }
  Server server;
  const std::string path = server.link->endpoint().path;
  ASSERT_EQ(write(to_child[1], path.data(), path.size()), std::ssize(path));
  ASSERT_TRUE(server.log.wait_up(1));
  EXPECT_EQ(server.log.up_.begin()->second.pid, child);
  kill(child, SIGKILL);
  ASSERT_TRUE(server.log.wait_down(1));
  EXPECT_EQ(server.log.downs()[0].reason, Down::Reason::kDisconnected);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
}

}  // namespace
}  // namespace tandem::link
