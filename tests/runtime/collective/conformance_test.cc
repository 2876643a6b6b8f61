// The promises of every collective, tested on each of them with 1 to 4 ranks, one thread per rank;
// a rank that must die for real is this program again.
//
// Tests runtime/collective/collective.h.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <functional>
#include <future>
#include <latch>
#include <thread>

#include "runtime/base/guarded.h"
#include "runtime/base/rng.h"
#include "runtime/collective/collective.h"
#include "runtime/collective/connection.h"
#include "runtime/collective/socket.h"
#include "runtime/link/free_port.h"
#include "runtime/link/socket_folder.h"
#include "runtime/node/process_host.h"
#include "tests/runtime/collective/gang_builder.h"
#include "tests/runtime/patience.h"

namespace tandem::collective {
namespace {

struct Case {
  std::string kind;
  int size = 1;
};

class Conformance : public testing::TestWithParam<Case> {
 protected:
  int size() const { return GetParam().size; }
  Gang make_gang() const {
    if (GetParam().kind == "local") return make_local_collectives(size());
    return make_socket_gang(size(), {}, {},
                            GetParam().kind == "plain" ? Privacy::kPlain : Privacy::kSealed);
  }
};

// Values whose sum depends on the order in which they are added.
std::vector<float> values_of(int rank, std::size_t count, std::uint64_t seed) {
  Rng rng(derive_seed(seed, {static_cast<std::uint64_t>(rank)}));
  std::vector<float> values(count);
  for (float& value : values) {
    value = static_cast<float>(rng.normal() * std::pow(10.0, rng.unit() * 8 - 4));
  }
  return values;
}

std::vector<float> serial_sum(int size, std::size_t count, std::uint64_t seed) {
  std::vector<float> sum = values_of(0, count, seed);
  for (int rank = 1; rank < size; ++rank) {
    const std::vector<float> addend = values_of(rank, count, seed);
    for (std::size_t i = 0; i < count; ++i) sum[i] += addend[i];
  }
  return sum;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

TEST_P(Conformance, CO1TheSumIsTheSerialOneToTheBit) {
  Gang gang = make_gang();
  constexpr std::size_t kFrame = kFrameBytesMax / sizeof(float);
  std::uint64_t seed = 100;
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, kFrame - 1, kFrame, kFrame + 1,
                                  3 * kFrame + 17, std::size_t{7}}) {
    SCOPED_TRACE(testing::Message() << "count " << count << " seed " << ++seed);
    const std::vector<float> expected = serial_sum(size(), count, seed);
    on_each_rank(gang, [&](Collective& rank) {
      std::vector<float> values = values_of(rank.rank(), count, seed);
      const auto done = rank.all_reduce_sum(values, kLong);
      ASSERT_TRUE(done) << render(done.error());
      EXPECT_TRUE(same_bits(values, expected)) << "rank " << rank.rank();
    });
  }
}

TEST_P(Conformance, CO1TheTimingDoesNotMatter) {
  Gang gang = make_gang();
  constexpr std::size_t kCount = 5000;
  for (int last = 0; last < size(); ++last) {  // each rank once comes after all the others
    std::latch others(size() - 1);
    const std::vector<float> expected = serial_sum(size(), kCount, 5);
    on_each_rank(gang, [&](Collective& rank) {
      std::vector<float> values = values_of(rank.rank(), kCount, 5);
      if (rank.rank() == last) {
        others.wait();
      } else {
        others.count_down();
      }
      ASSERT_TRUE(rank.all_reduce_sum(values, kLong));
      EXPECT_TRUE(same_bits(values, expected)) << "rank " << rank.rank();
    });
  }
}

TEST_P(Conformance, TheSumThatIsHandedInIsUsed) {
  // Local only differs in the factory; the socket's takes it in GangSpec.
  static std::atomic<int> calls;
  calls = 0;
  Gang gang = make_local_collectives(size(), [](float* a, const float* b, std::size_t n) {
    ++calls;
    add_floats(a, b, n);
  });
  on_each_rank(gang, [](Collective& rank) {
    std::vector<float> one(10, 1.0f);
    ASSERT_TRUE(rank.all_reduce_sum(one, kLong));
    EXPECT_EQ(one[9], static_cast<float>(rank.size()));
  });
  EXPECT_EQ(calls, size() - 1);
}

TEST_P(Conformance, BroadcastFromEveryRank) {
  Gang gang = make_gang();
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{5}, 2 * kFrameBytesMax + 3}) {
    for (int root = 0; root < size(); ++root) {
      on_each_rank(gang, [&](Collective& rank) {
        std::vector<std::byte> block(bytes, static_cast<std::byte>(rank.rank() + 1));
        ASSERT_TRUE(rank.broadcast(block, root, kLong));
        EXPECT_EQ(block, std::vector<std::byte>(bytes, static_cast<std::byte>(root + 1)));
      });
    }
  }
}

TEST_P(Conformance, CO5WhoAwaitsRankZeroHearsItsBroadcast) {
  Gang gang = make_gang();
  for (const std::size_t bytes : {std::size_t{16}, 2 * kFrameBytesMax + 3}) {
    on_each_rank(gang, [&](Collective& rank) {
      std::vector<std::byte> block(bytes, static_cast<std::byte>(rank.rank() + 1));
      const auto done = rank.rank() == 0 ? rank.broadcast(block, 0, kLong)
                                         : rank.await_broadcast(block, "rank 0's word");
      ASSERT_TRUE(done) << render(done.error());
      EXPECT_EQ(block, std::vector<std::byte>(bytes, std::byte{1}));
    });
  }
}

// A rank 0 that never calls. Over sockets it sends no heartbeat either: the next is due in an hour.
TEST_P(Conformance, CO5AHungRankZeroIsNamedToWhoeverAwaitsIt) {
  if (size() == 1) return;
  const Duration soon = std::chrono::milliseconds(60);
  Gang gang = GetParam().kind == "socket"
                  ? make_socket_gang(size(), {.heartbeat_every = std::chrono::hours(1)},
                                     {.heartbeat_every = soon / 10, .silence_max = soon})
                  : make_local_collectives(size(), add_floats, soon);
  std::latch others(size() - 1);
  on_each_rank(gang, [&](Collective& rank) {
    if (rank.rank() == 0) return others.wait();
    std::vector<std::byte> block(16);
    const auto done = rank.await_broadcast(block, "rank 0's word");
    others.count_down();
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, ErrorCode::kTimedOut) << render(done.error());
    EXPECT_NE(done.error().message.find("rank 0"), std::string::npos) << done.error().message;
    const auto again = rank.barrier(kLong);  // CO-4
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().message, done.error().message);
  });
}

TEST_P(Conformance, AllGatherKeepsOrderAndSizes) {
  Gang gang = make_gang();
  const auto blob_of = [](int rank) {
    return rank == 1 ? std::string() : std::string(rank == 2 ? kBlobBytesMax : 3, 'a' + rank);
  };
  on_each_rank(gang, [&](Collective& rank) {
    for (int i = 0; i < 3; ++i) {
      const auto blobs = rank.all_gather(blob_of(rank.rank()), kLong);
      ASSERT_TRUE(blobs) << render(blobs.error());
      ASSERT_EQ(blobs->size(), static_cast<std::size_t>(rank.size()));
      for (int other = 0; other < rank.size(); ++other) {
        EXPECT_EQ((*blobs)[static_cast<std::size_t>(other)], blob_of(other));
      }
    }
  });
}

TEST_P(Conformance, NobodyPassesABarrierBeforeAllHaveCome) {
  Gang gang = make_gang();
  std::atomic<int> came = 0;
  on_each_rank(gang, [&](Collective& rank) {
    for (int round = 1; round <= 20; ++round) {
      ++came;
      ASSERT_TRUE(rank.barrier(kLong));
      EXPECT_GE(came, round * rank.size());
    }
  });
}

TEST_P(Conformance, CO2AMissingRankIsNamedWhenTheTimeIsUp) {
  for (int absent = 0; absent < size() && size() > 1; ++absent) {
    const std::string expected = "waiting for rank " + std::to_string(absent);
    const auto trial = [&](Duration soon) {
      Gang gang = make_gang();
      std::latch others(size() - 1);
      Guarded<std::string> misnamed;
      on_each_rank(gang, [&](Collective& rank) {
        if (rank.rank() == absent) return others.wait();  // alive, but in no call
        std::vector<float> values(70000, 1.0f);
        // Rank 0 is the one that all wait for: its time is up first, and the others hear from it.
        const Duration patience = rank.rank() == 0 || absent == 0 ? soon : kLong;
        const auto done = rank.all_reduce_sum(values, patience);
        others.count_down();
        ASSERT_FALSE(done);
        EXPECT_EQ(done.error().code, ErrorCode::kTimedOut) << render(done.error());
        if (done.error().message.find(expected) == std::string::npos) {
          misnamed.with([&](auto& text) {
            text = "rank " + std::to_string(rank.rank()) + ": " + done.error().message;
          });
        }
        const auto again = rank.barrier(kLong);  // CO-4
        ASSERT_FALSE(again);
        EXPECT_EQ(again.error().message, done.error().message);
      });
      return misnamed.with([](const auto& text) { return text; });
    };
    EXPECT_EQ("", with_growing_patience(trial)) << expected;
  }
}

TEST_P(Conformance, CO3ARankThatLeavesIsNamed) {
  for (int leaver = 0; leaver < size() && size() > 1; ++leaver) {
    Gang gang = make_gang();
    std::latch others(size() - 1);
    std::vector<std::thread> threads;
    for (int r = 0; r < size(); ++r) {
      threads.emplace_back([&, r] {
        auto rank = std::move(gang[static_cast<std::size_t>(r)]);
        if (r == leaver) return;  // the collective ends here
        const auto done = rank->barrier(kLong);
        ASSERT_FALSE(done);
        EXPECT_EQ(done.error().code, ErrorCode::kFailed) << render(done.error());
        EXPECT_NE(done.error().message.find("rank " + std::to_string(leaver) + " has gone"),
                  std::string::npos)
            << "rank " << r << ": " << done.error().message;
        others.count_down();
        others.wait();  // else the next to leave might be named
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

TEST_P(Conformance, CO3RanksThatDisagreeAreToldSo) {
  if (size() == 1) return;
  const std::vector<std::pair<std::string, std::function<Result<void>(Collective&)>>> odd_calls = {
      {"all_reduce_sum of 44 bytes",
       [](Collective& rank) {
         std::vector<float> values(11);
         return rank.all_reduce_sum(values, kLong);
       }},
      {"barrier", [](Collective& rank) { return rank.barrier(kLong); }},
  };
  for (const auto& [name, odd_call] : odd_calls) {
    Gang gang = make_gang();
    std::latch all(size());
    on_each_rank(gang, [&, name = name, odd_call = odd_call](Collective& rank) {
      std::vector<float> values(10);
      const bool odd = rank.rank() == rank.size() - 1;
      const auto done = odd ? odd_call(rank) : rank.all_reduce_sum(values, kLong);
      ASSERT_FALSE(done);
      EXPECT_EQ(done.error().code, ErrorCode::kInvalid);
      EXPECT_EQ(done.error().message, "rank " + std::to_string(rank.size() - 1) + " calls " + name +
                                          " where rank 0 calls all_reduce_sum of 40 bytes");
      all.arrive_and_wait();
    });
  }
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const char* kind : {"local", "socket", "plain"}) {
    for (int size = 1; size <= 4; ++size) all.push_back({kind, size});
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(Implementation, Conformance, testing::ValuesIn(cases()),
                         [](const auto& one) {
                           return one.param.kind + std::to_string(one.param.size);
                         });

TEST(SocketGang, AStrangerIsRefusedAndDisturbsNobody) {
  GangListener listener = GangListener::listen().value();
  const link::Endpoint address = listener.endpoint();
  const OwnedFd silent = dial_stream(address, steady_now() + kLong).value();
  std::thread outsiders([&] {
    const auto stranger = dial_gang(address, 1, spec_of(2, "job-1/learner/0.2"), kLong);
    ASSERT_FALSE(stranger);
    EXPECT_EQ(stranger.error().code, ErrorCode::kUnauthorised) << render(stranger.error());
    const auto odd = dial_gang(address, 2, spec_of(3), kLong);
    ASSERT_FALSE(odd);
    EXPECT_EQ(odd.error().code, ErrorCode::kInvalid) << render(odd.error());
    const auto rank = dial_gang(address, 1, spec_of(2), kLong);
    ASSERT_TRUE(rank) << render(rank.error());
    EXPECT_TRUE((*rank)->barrier(kLong));
  });
  const auto rank = std::move(listener).accept(spec_of(2), kLong);
  ASSERT_TRUE(rank) << render(rank.error());
  EXPECT_TRUE((*rank)->barrier(kLong));
  outsiders.join();
}

TEST(SocketGang, RanksThatDoNotComeAreNamedToThoseThatDid) {
  const std::string expected = "timed out waiting for rank 1, rank 3 to join the gang";
  const auto trial = [&](Duration soon) -> std::string {
    GangListener listener = GangListener::listen().value();
    const link::Endpoint address = listener.endpoint();
    auto rank_2 =
        std::async(std::launch::async, [&] { return dial_gang(address, 2, spec_of(4), kLong); });
    const auto rank_0 = std::move(listener).accept(spec_of(4), soon);
    const auto told = rank_2.get();
    if (rank_0 || told) return "a gang of two ranks of four";
    EXPECT_EQ(rank_0.error().code, ErrorCode::kTimedOut);
    if (rank_0.error().message != expected) return rank_0.error().message;
    return told.error().message == expected ? "" : told.error().message;
  };
  EXPECT_EQ("", with_growing_patience(trial));
}

// CO-2: rank 0 may itself have been stopped while its time ran out. A rank that came before that is
// there, and is not named.
TEST(SocketGang, RanksThatCameWhileRankZeroSleptAreNotNamed) {
  const auto trial = [&](Duration) -> std::string {
    GangListener listener = GangListener::listen().value();
    const auto come = [&](int rank) {
      OwnedFd fd = dial_stream(listener.endpoint(), steady_now() + kLong).value();
      return std::async(std::launch::async, [fd = std::move(fd), rank] {
        Challenge challenge;
        EXPECT_EQ(receive_all(fd.get(), std::as_writable_bytes(std::span(&challenge, 1)),
                              steady_now() + kLong),
                  Transfer::kDone);
        const Hello hello = hello_of(rank, 4, spec_of(4).secret, challenge);
        std::span<const std::byte> said = std::as_bytes(std::span(&hello, 1));
        send_some(fd.get(), said);
        FrameHeader told;  // the connection stays until rank 0 has given up
        return receive_all(fd.get(), bytes_of(told), steady_now() + kLong);
      });
    };
    auto rank_1 = come(1), rank_3 = come(3);
    const auto rank_0 = std::move(listener).accept(spec_of(4), Duration::zero());
    listener = GangListener::listen().value();  // the unheard ranks are hung up on
    rank_1.get();
    rank_3.get();
    if (rank_0) return "a gang of three ranks of four";
    const std::string expected = "timed out waiting for rank 2 to join the gang";
    return rank_0.error().message == expected ? "" : rank_0.error().message;
  };
  EXPECT_EQ("", with_growing_patience(trial));
}

// A program that listens where a gang was said to meet learns nothing and is not believed.
TEST(SocketGang, ARankBelievesNobodyWhoDoesNotKnowTheSecret) {
  GangListener impostor = GangListener::listen().value();
  const link::Endpoint address = impostor.endpoint();
  auto rank =
      std::async(std::launch::async, [&] { return dial_gang(address, 1, spec_of(2), kLong); });
  EXPECT_FALSE(std::move(impostor).accept(spec_of(2, "a guess"), std::chrono::milliseconds(200)));
  const auto refused = rank.get();
  ASSERT_FALSE(refused);

  link::Endpoint bound;
  const OwnedFd forger = listen_stream({}, {}, &bound).value();
  auto deceived =
      std::async(std::launch::async, [&] { return dial_gang(bound, 1, spec_of(2), kLong); });
  pollfd came{.fd = forger.get(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&came, 1, poll_timeout_ms(steady_now() + kLong)), 1);
  const OwnedFd caller(::accept4(forger.get(), nullptr, nullptr, SOCK_CLOEXEC));
  const Challenge challenge = make_challenge();
  FrameHeader welcome;
  welcome.magic = kFrameMagic;
  welcome.kind = FrameKind::kWelcome;
  welcome.bytes = kProofBytes;
  const std::string forged(kProofBytes, '0');
  std::span<const std::byte> parts[] = {std::as_bytes(std::span(&challenge, 1)),
                                        bytes_of(std::as_const(welcome)),
                                        std::as_bytes(std::span(forged))};
  for (std::span<const std::byte> part : parts) send_some(caller.get(), part);
  const auto outcome = deceived.get();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, ErrorCode::kUnauthorised) << render(outcome.error());
}

// A rank that was told to trust the network is not let into a gang that does not.
TEST(SocketGang, RanksOfDifferentPrivacyDoNotMeet) {
  for (const Privacy of_rank_0 : {Privacy::kSealed, Privacy::kPlain}) {
    GangSpec spec = spec_of(2), other = spec_of(2);
    spec.privacy = of_rank_0;
    other.privacy = of_rank_0 == Privacy::kSealed ? Privacy::kPlain : Privacy::kSealed;
    GangListener listener = GangListener::listen().value();
    const link::Endpoint address = listener.endpoint();
    auto refused =
        std::async(std::launch::async, [&] { return dial_gang(address, 1, other, kLong); });
    std::thread rank_1([&] {
      EXPECT_EQ(refused.get().error().code, ErrorCode::kUnauthorised);
      EXPECT_TRUE(dial_gang(address, 1, spec, kLong).value()->barrier(kLong));
    });
    const auto rank_0 = std::move(listener).accept(spec, kLong);
    ASSERT_TRUE(rank_0) << render(rank_0.error());
    EXPECT_TRUE((*rank_0)->barrier(kLong));
    rank_1.join();
  }
}

// A hello of one gang is of no use in the next.
TEST(SocketGang, AHelloThatWasOverheardIsRefused) {
  const Challenge first = make_challenge(), second = make_challenge();
  const Hello hello = hello_of(1, 2, "secret", first);
  EXPECT_TRUE(proves(hello, "secret", first));
  EXPECT_FALSE(proves(hello, "secret", second));
  EXPECT_FALSE(proves(hello, "another", first));
  Hello other_rank = hello;
  other_rank.rank = 0;
  EXPECT_FALSE(proves(other_rank, "secret", first));
  // The hub's proof differs from a rank's, and depends on both nonces.
  EXPECT_NE(welcome_proof("secret", hello, first), std::string(hello.proof, kProofBytes));
  EXPECT_NE(welcome_proof("secret", hello, first), welcome_proof("secret", hello, second));
}

TEST(SocketGang, PN_1_meets_within_a_range_of_ports) {
  const std::uint16_t free = link::free_port().value();
  const link::PortRange one{free, free};
  const auto first = GangListener::listen({}, one);
  ASSERT_TRUE(first) << render(first.error());
  EXPECT_EQ(first->endpoint().port, free);
  const auto second = GangListener::listen({}, one);
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find(to_string(one)), std::string::npos)
      << second.error().message;
}

TEST(SocketGang, MeetsAtAnAddressOfIpv6) {
  auto listener = GangListener::listen({.host = "::1"});
  if (!listener) GTEST_SKIP() << "no IPv6 here: " << listener.error().message;
  const link::Endpoint address = listener->endpoint();
  EXPECT_NE(address.port, 0);
  auto rank_1 = std::async(std::launch::async, [&] {
    auto rank = dial_gang(address, 1, spec_of(2), kLong).value();
    return rank->barrier(kLong).has_value();
  });
  auto rank_0 = std::move(*listener).accept(spec_of(2), kLong).value();
  EXPECT_TRUE(rank_0->barrier(kLong));
  EXPECT_TRUE(rank_1.get());
}

TEST(SocketGang, MeetsAtAUnixSocket) {
  link::SocketFolder folder = link::SocketFolder::make().value();
  GangListener listener = GangListener::listen(folder.next()).value();
  const link::Endpoint address = listener.endpoint();
  EXPECT_TRUE(address.is_local());
  auto rank_1 = std::async(std::launch::async, [&] {
    auto rank = dial_gang(address, 1, spec_of(2), kLong).value();
    return rank->barrier(kLong).has_value();
  });
  auto rank_0 = std::move(listener).accept(spec_of(2), kLong).value();
  EXPECT_TRUE(rank_0->barrier(kLong));
  EXPECT_TRUE(rank_1.get());
}

TEST(SocketGang, NobodyAtTheAddress) {
  link::Endpoint address;
  { address = GangListener::listen()->endpoint(); }
  const auto refused = dial_gang(address, 1, spec_of(2), kLong);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUnreachable);
  EXPECT_EQ(refused.error().where, to_string(address));
}

TEST(SocketGang, CO3AKilledProcessFailsTheOthersPromptly) {
  GangListener listener = GangListener::listen().value();
  const link::Endpoint address = listener.endpoint();
  node::PosixProcessHost host;
  const auto process =
      host.spawn({.name = "rank 2",
                  .argv = {"/proc/self/exe", "--die-in-a-gang", to_string(address)},
                  .environment = {},
                  .log_path = "/dev/null",
                  .working_directory = {}},
                 [](node::ProcessId, const node::ExitStatus&) {});
  ASSERT_TRUE(process);
  auto rank_1 = std::async(std::launch::async, [&] {
    auto rank = dial_gang(address, 1, spec_of(3), kLong).value();
    std::vector<float> values(500'000, 1.0f);
    return rank->all_reduce_sum(values, kLong);
  });
  auto rank_0 = std::move(listener).accept(spec_of(3), kLong).value();
  std::vector<float> values(500'000, 1.0f);
  const auto done = rank_0->all_reduce_sum(values, kLong);
  const auto told = rank_1.get();
  for (const auto* result : {&done, &told}) {
    ASSERT_FALSE(*result);
    // The message of a call that ran into its timeout is another one.
    EXPECT_NE(result->error().message.find("rank 2 has gone"), std::string::npos)
        << result->error().message;
  }
}

// Rank 2 of a gang of three: sends the beginning of its values and is killed.
int die_in_a_gang(const std::string& address) {
  auto rank = dial_gang(link::parse_endpoint(address).value(), 2, spec_of(3), kLong).value();
  ::kill(::getpid(), SIGKILL);  // the others are in a call that waits for this rank's part
  for (;;) ::pause();
}

}  // namespace
}  // namespace tandem::collective

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv, argv + argc);
  if (argc == 3 && arguments[1] == "--die-in-a-gang") {
    return tandem::collective::die_in_a_gang(arguments[2]);
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
