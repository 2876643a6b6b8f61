// Shards of buckets, exchanged between threads of this process: by the exchange for tests, and by
// NCCL's communicators on the fake library.
#include "runtime/collective/shard_exchange.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <deque>
#include <memory>
#include <optional>
#include <semaphore>
#include <string>

#include "tests/runtime/collective/local_shards.h"
#include "tests/runtime/collective/shard_gang.h"
#include "tests/runtime/patience.h"
#include "tests/seeds.h"

namespace tandem::collective {
namespace {

// All ranks are on one GPU here.
const int kSharedGpu = ::setenv("TANDEM_FAKE_NCCL_VERSION", "23003", 1) +
                       ::setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 1);

constexpr std::int64_t kFloatsMax = 6000;

const FakeNccl& fake() {
  static const FakeNccl opened = open_fake_nccl();
  return opened;
}

TEST(ShardOf, ShardsCoverTheBucketInOrderAndAreAlike) {
  for_seeds(2000, [](std::uint64_t seed) {
    Rng rng(seed);
    const int ranks = 1 + static_cast<int>(rng.below(64));
    // Counts of all magnitudes.
    const auto floats = static_cast<std::int64_t>(rng.next() >> (2 + rng.below(62)));
    std::int64_t end = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const ShardRange shard = shard_of(floats, rank, ranks);
      EXPECT_EQ(shard.begin, end);
      EXPECT_EQ(shard.begin % kShardAlignFloats, 0);
      EXPECT_GE(shard.size(), 0);
      EXPECT_LE(shard.size(), floats / ranks + 1 + kShardAlignFloats);
      const auto place = static_cast<std::int64_t>(static_cast<__int128>(floats) * rank / ranks);
      EXPECT_LE(shard.begin, place);
      EXPECT_LT(place - shard.begin, kShardAlignFloats);
      end = shard.end;
    }
    EXPECT_EQ(end, floats);
  });
}

struct Kind {
  const char* name;
  bool nccl;
};

class NcclShardFaults : public testing::Test {
 protected:
  ~NcclShardFaults() override { fake().set_faults(""); }

  ShardExchanges make_by_nccl(int size, Duration timeout) {
    return make_shards_by_nccl(processes_, fake(), size,
                               {.communicator = nullptr,
                                .bucket_floats_max = kFloatsMax,
                                .timeout = timeout,
                                .device = device::DeviceKind::kCpu,
                                .sum = sum_on_host});
  }

  NcclShardProcesses processes_;  // outlive the exchanges
};

class Shards : public NcclShardFaults, public testing::WithParamInterface<Kind> {
 protected:
  ShardExchanges make(int size, Duration timeout = kNcclPatience) {
    return GetParam().nccl ? make_by_nccl(size, timeout) : make_local_shards(size, timeout);
  }
};

device::TensorView view(Floats& bucket) {
  return device::tensor(bucket.data(), {static_cast<std::int64_t>(bucket.size())});
}

std::string complaint_of(const Result<void>& result) {
  return result ? "no error" : render(result.error());
}

void expect_fine(const Result<void>& result) { EXPECT_TRUE(result) << complaint_of(result); }

std::int64_t some_length(Rng& rng, int ranks) {
  const std::int64_t few = kShardAlignFloats * ranks;
  const std::int64_t lengths[] = {0, 1, kShardAlignFloats, few - 1, few, few + 1};
  if (rng.below(2) == 0) return lengths[rng.below(std::size(lengths))];
  return static_cast<std::int64_t>(rng.below(kFloatsMax + 1));
}

// The buckets of one rank, by the seed.
struct Buckets {
  Buckets(std::uint64_t seed_of_all, int rank, int size) : seed(seed_of_all) {
    Rng rng(seed);
    for (int i = 0; i < 7; ++i)
      all.push_back(floats_of_rank(seed, rank, i, some_length(rng, size)));
  }
  std::int64_t floats(std::size_t i) const { return static_cast<std::int64_t>(all[i].size()); }

  // Whether [begin, end) of each bucket is the sum in rank order.
  void expect_sums(int size, const std::function<ShardRange(std::int64_t floats)>& range) const {
    for (std::size_t i = 0; i < all.size(); ++i) expect_sum(i, size, range(floats(i)));
  }
  void expect_sum(std::size_t i, int size, const ShardRange& part) const {
    const Floats sum = summed(seed, size, static_cast<int>(i), floats(i));
    EXPECT_TRUE(same_floats(all[i].data() + part.begin, sum.data() + part.begin, part.size()))
        << "bucket " << i << " of " << floats(i) << " floats";
  }

  std::uint64_t seed;
  std::vector<Floats> all;
};

// Many buckets are under way at once, then all of them are gathered.
TEST_P(Shards, SH1SumsHaveTheBitsOfRankOrder) {
  for (int size = 1; size <= 4; ++size) {
    for_seeds(6, [&](std::uint64_t seed) {
      ShardExchanges ranks = make(size);
      on_each_rank(ranks, [&](ShardExchange& exchange) {
        EXPECT_EQ(exchange.size(), size);
        Buckets buckets(seed, exchange.rank(), size);
        for (Floats& bucket : buckets.all)
          expect_fine(exchange.reduce_scatter(view(bucket), device::Stream{}));
        expect_fine(exchange.hold_back(device::Stream{}, buckets.all.size()));
        buckets.expect_sums(size,
                            [&](std::int64_t n) { return shard_of(n, exchange.rank(), size); });
        for (Floats& bucket : buckets.all)
          expect_fine(exchange.all_gather(view(bucket), device::Stream{}));
        expect_fine(exchange.wait());
        buckets.expect_sums(size, [](std::int64_t n) { return ShardRange{.begin = 0, .end = n}; });
      });
    });
  }
}

// A call reads the result that the call of the other kind before it left in the same bucket.
TEST_P(Shards, SH1AReducedBucketIsGatheredWithoutAWaitBetween) {
  for_seeds(6, [&](std::uint64_t seed) {
    ShardExchanges ranks = make(3);
    on_each_rank(ranks, [&](ShardExchange& exchange) {
      Buckets buckets(seed, exchange.rank(), 3);
      for (Floats& bucket : buckets.all) {
        expect_fine(exchange.reduce_scatter(view(bucket), device::Stream{}));
        expect_fine(exchange.all_gather(view(bucket), device::Stream{}));
      }
      expect_fine(exchange.wait());
      buckets.expect_sums(3, [](std::int64_t n) { return ShardRange{.begin = 0, .end = n}; });
    });
  });
}

// If another order had the same bits, the tests above could not tell one order from another.
TEST(ShardSums, AnotherOrderHasOtherBits) {
  for (int size = 3; size <= 4; ++size)
    EXPECT_FALSE(
        same_floats(summed(1, size, 0, 100).data(), summed(1, size, 0, 100, true).data(), 100));
}

// A rank whose part of the batch is empty brings zeros.
TEST_P(Shards, SH2ARankWithoutWorkOfItsOwnTakesPart) {
  ShardExchanges ranks = make(3);
  on_each_rank(ranks, [](ShardExchange& exchange) {
    Floats bucket = floats_of_rank(1, exchange.rank(), 0, 1000);
    if (exchange.rank() == 1) bucket.assign(1000, 0.0f);
    expect_fine(exchange.reduce_scatter(view(bucket), device::Stream{}));
    expect_fine(exchange.all_gather(view(bucket), device::Stream{}));
    expect_fine(exchange.wait());
    const Floats first = floats_of_rank(1, 0, 0, 1000), last = floats_of_rank(1, 2, 0, 1000);
    for (std::size_t i = 0; i < bucket.size(); ++i) EXPECT_EQ(bucket[i], first[i] + last[i]);
  });
}

// Rank 0 makes all its calls, and the others make each of theirs only once rank 0 was let through
// for the one before. Between two waits, calls are counted anew.
TEST_P(Shards, SH4ThoseCallsAreWaitedForThatWereNamed) {
  for (int size = 1; size <= 4; ++size) {
    for_seeds(6, [&](std::uint64_t seed) {
      ShardExchanges ranks = make(size);
      std::deque<std::counting_semaphore<>> turns;  // one a rank
      for (int rank = 0; rank < size; ++rank) turns.emplace_back(0);
      on_each_rank(ranks, [&](ShardExchange& exchange) {
        Buckets buckets(seed, exchange.rank(), size);
        for (Floats& bucket : buckets.all)
          expect_fine(exchange.reduce_scatter(view(bucket), device::Stream{}));
        expect_fine(exchange.wait());
        if (exchange.rank() == 0) {
          for (Floats& bucket : buckets.all)
            expect_fine(exchange.all_gather(view(bucket), device::Stream{}));
          expect_fine(exchange.hold_back(device::Stream{}, 0));
          for (std::size_t i = 0; i < buckets.all.size(); ++i) {
            for (auto& turn : turns) turn.release();
            expect_fine(exchange.hold_back(device::Stream{}, i + 1));
            buckets.expect_sum(i, size, {.begin = 0, .end = buckets.floats(i)});
          }
        } else {
          for (Floats& bucket : buckets.all) {
            turns[static_cast<std::size_t>(exchange.rank())].acquire();
            expect_fine(exchange.all_gather(view(bucket), device::Stream{}));
          }
        }
        expect_fine(exchange.wait());
        buckets.expect_sums(size, [](std::int64_t n) { return ShardRange{.begin = 0, .end = n}; });
      });
    });
  }
}

// The last of `size` ranks makes one call less. Returns the fault in the way in which ranks 0 and 1
// fail then, "" where there is none.
std::string complaint_of_ranks_ahead(ShardExchanges& ranks) {
  std::vector<std::string> complaints(ranks.size());
  const int last = static_cast<int>(ranks.size()) - 1;
  on_each_rank(ranks, [&](ShardExchange& exchange) {
    std::string& complaint = complaints[static_cast<std::size_t>(exchange.rank())];
    Floats first(500, 1.0f), second(500, 1.0f);
    if (auto queued = exchange.reduce_scatter(view(first), device::Stream{}); !queued)
      complaint = complaint_of(queued);
    if (auto done = exchange.wait(); !done) complaint = "the first call: " + complaint_of(done);
    if (exchange.rank() == last || !complaint.empty()) return;
    const auto queued = exchange.reduce_scatter(view(second), device::Stream{});
    const auto done = exchange.wait();
    if (!queued) complaint = complaint_of(queued);  // another rank was the first to give up
    if (done || done.error().code != ErrorCode::kTimedOut ||
        done.error().message.find("reduce_scatter") == std::string::npos ||
        done.error().message.find("rank " + std::to_string(last)) == std::string::npos)
      complaint = complaint_of(done);
    // Every further call fails the same way, and at once.
    if (!done &&
        (complaint_of(exchange.all_gather(view(second), device::Stream{})) != complaint_of(done) ||
         complaint_of(exchange.hold_back(device::Stream{}, 1)) != complaint_of(done) ||
         complaint_of(exchange.wait()) != complaint_of(done)))
      complaint = "another error in a further call";
  });
  for (const std::string& complaint : complaints)
    if (!complaint.empty()) return complaint;
  return "";
}

TEST_P(Shards, SH2TheCallThatIsBehindFailsByItsDeadlineAndSD3ItsErrorStays) {
  for (const int size : {2, 3})
    EXPECT_EQ(with_growing_patience([&](Duration patience) {
                ShardExchanges ranks = make(size, patience);
                return complaint_of_ranks_ahead(ranks);
              }),
              "");
}

// Once wait() has failed the late rank may come: it neither writes to this rank's bucket, nor reads
// it where it has been freed, which the sanitizer would see.
TEST_P(Shards, SH3AfterAnErrorNoMemoryIsTouched) {
  ShardExchanges ranks = make(2, std::chrono::milliseconds(100));
  auto given = std::make_unique<Floats>(1000, 1.0f);
  auto freed = std::make_unique<Floats>(1000, 1.0f);
  expect_fine(ranks[0]->reduce_scatter(view(*given), device::Stream{}));
  expect_fine(ranks[0]->all_gather(view(*freed), device::Stream{}));
  EXPECT_FALSE(ranks[0]->wait());
  given->assign(given->size(), 7.0f);
  freed.reset();
  Floats late(1000, 2.0f);
  if (ranks[1]->reduce_scatter(view(late), device::Stream{})) {
    EXPECT_FALSE(ranks[1]->wait());
  }
  ranks.clear();
  EXPECT_EQ(*given, Floats(1000, 7.0f));
}

TEST_P(Shards, ARankThatLeavesEndsTheOthersCalls) {
  ShardExchanges ranks = make(3, std::chrono::seconds(5));
  on_each_rank(ranks, [](ShardExchange& exchange) {
    Floats bucket(1000, 1.0f);
    expect_fine(exchange.reduce_scatter(view(bucket), device::Stream{}));
    expect_fine(exchange.wait());
  });
  ranks[2].reset();
  ranks.pop_back();
  on_each_rank(ranks, [](ShardExchange& exchange) {
    Floats bucket(1000, 1.0f);
    const auto queued = exchange.reduce_scatter(view(bucket), device::Stream{});
    const auto done = exchange.wait();
    ASSERT_FALSE(done);
    EXPECT_NE(done.error().message.find("rank"), std::string::npos) << complaint_of(done);
  });
}

INSTANTIATE_TEST_SUITE_P(Kinds, Shards, testing::Values(Kind{"Local", false}, Kind{"Nccl", true}),
                         [](const auto& kind) { return kind.param.name; });

TEST(LocalShards, SH2RanksThatDisagreeAreNamed) {
  ShardExchanges ranks = make_local_shards(2);
  Floats bucket(1000), shorter(900);
  expect_fine(ranks[0]->reduce_scatter(view(bucket), device::Stream{}));
  const auto differs = ranks[1]->reduce_scatter(view(shorter), device::Stream{});
  ASSERT_FALSE(differs);
  EXPECT_EQ(differs.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(differs.error().message,
            "rank 1 calls reduce_scatter of 3600 bytes where rank 0 calls reduce_scatter of 4000 "
            "bytes");
  EXPECT_EQ(complaint_of(ranks[0]->wait()), complaint_of(differs));
}

// The hanging peer's call never ends; each rank's wait ends by the deadline, with the call's name.
// The rank whose deadline comes first may end the communicator before the other's does.
TEST_F(NcclShardFaults, SH3APeerThatHangsIsWaitedForUntilTheDeadline) {
  fake().set_faults("rank=1,op=send,at=1,fault=hang");
  ShardExchanges ranks = make_by_nccl(2, std::chrono::milliseconds(200));
  std::atomic<int> timed_out = 0;
  on_each_rank(ranks, [&timed_out](ShardExchange& exchange) {
    Floats bucket(1000, 1.0f);
    expect_fine(exchange.reduce_scatter(view(bucket), device::Stream{}));
    const auto done = exchange.wait();
    ASSERT_FALSE(done);
    const std::string& message = done.error().message;
    if (done.error().code != ErrorCode::kTimedOut) {
      EXPECT_EQ(done.error().code, ErrorCode::kFailed) << message;
      return;
    }
    ++timed_out;
    EXPECT_NE(message.find("(reduce_scatter 1 of 1000 floats)"), std::string::npos) << message;
    const std::string other = "rank " + std::to_string(1 - exchange.rank());
    EXPECT_NE(message.find(other), std::string::npos) << message;
  });
  EXPECT_GE(timed_out, 1);
}

// The first error is the one that stays, and the operation of the other lane ends soon.
TEST_F(NcclShardFaults, SH3WhatNcclRefusesIsTheErrorOfEveryFurtherCall) {
  fake().set_faults("rank=0,op=recv,at=2,fault=refuse,code=3");
  ShardExchanges ranks = make_by_nccl(2, kNcclPatience);
  std::vector<Floats> buckets(8, Floats(1000, 1.0f));
  Floats others(1000, 1.0f);
  expect_fine(ranks[1]->reduce_scatter(view(others), device::Stream{}));
  for (Floats& bucket : buckets)
    if (!ranks[0]->reduce_scatter(view(bucket), device::Stream{})) break;
  const auto done = ranks[0]->wait();
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message.find("reduce_scatter 2 of 1000 floats"), std::string::npos)
      << complaint_of(done);
  EXPECT_NE(done.error().message.find("ncclRecv"), std::string::npos) << complaint_of(done);
  EXPECT_EQ(complaint_of(ranks[0]->all_gather(view(others), device::Stream{})), complaint_of(done));
  ranks.clear();
}

TEST(NcclShards, TooManyRanksAreRefused) {
  const auto made = make_nccl_shards({.communicator = nullptr, .size = kShardRanksMax + 1});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().message, "cannot share shards between 65 ranks: not 1 to 64");
}

}  // namespace
}  // namespace tandem::collective
