// The meeting of a gang's ranks for NCCL, in this process: collectives between threads, and the
// library that only pretends to be NCCL.
//
// Tests actors/main/roles/gang_shards.h.
#include "actors/main/roles/gang_shards.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>
#include <vector>

#include "tests/runtime/collective/nccl_rank.h"

namespace tandem::app {
namespace {

using collective::ShardExchange;

constexpr int kRanks = 3;

// All ranks of this process have one GPU, which NCCL allows by a setting alone.
const int kOneGpu = ::setenv("TANDEM_FAKE_NCCL_VERSION", "23003", 1) +
                    ::setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 1);

struct Gang {
  Gang() {
    EXPECT_EQ(kOneGpu, 0);
    for (int rank = 0; rank < kRanks; ++rank) {
      threads.push_back(std::make_unique<collective::NcclThread>());
      processes.push_back(
          {.api = fake.api, .streams = fake.streams, .thread = threads.back().get()});
    }
  }
  // Rank r has a layout of one tensor, `widths[r]` wide.
  std::vector<Result<std::unique_ptr<ShardExchange>>> meet(std::vector<std::int64_t> widths) {
    std::vector<Result<std::unique_ptr<ShardExchange>>> met;
    for (int rank = 0; rank < kRanks; ++rank) met.emplace_back(Error{.message = "did not end"});
    std::vector<std::thread> ranks;
    for (std::size_t rank = 0; rank < kRanks; ++rank)
      ranks.emplace_back([&, rank] {
        device::Manifest manifest;
        manifest.add("norm.weight", device::DType::kF32, {widths[rank]});
        met[rank] = make_gang_shards({.name = "job/learner",
                                      .epoch = 4,
                                      .layout = weights::layout_of(manifest),
                                      .bucket_floats_max = 1024,
                                      .timeout = collective::kNcclPatience,
                                      .device = device::DeviceKind::kCpu},
                                     *gang[rank], processes[rank]);
        if (!met[rank]) gang[rank].reset();  // as the end of its process does
      });
    for (std::thread& rank : ranks) rank.join();
    return met;
  }

  collective::FakeNccl fake = collective::open_fake_nccl();
  std::vector<std::unique_ptr<collective::NcclThread>> threads;
  std::vector<collective::NcclProcess> processes;
  std::vector<std::unique_ptr<collective::Collective>> gang =
      collective::make_local_collectives(kRanks);
};

TEST(GangShards, RanksOfOneLayoutShare) {
  Gang gang;
  const auto met = gang.meet({7, 7, 7});
  for (int rank = 0; rank < kRanks; ++rank) {
    const auto& shards = met[static_cast<std::size_t>(rank)];
    ASSERT_TRUE(shards) << shards.error().message;
    EXPECT_EQ((*shards)->rank(), rank);
    EXPECT_EQ((*shards)->size(), kRanks);
  }
}

// NV-1 for a gang: the rank that differs says so, and the others do not wait for it in NCCL.
TEST(GangShards, ALayoutThatDiffersIsRefusedBeforeNcclStarts) {
  Gang gang;
  const auto met = gang.meet({7, 7, 8});
  ASSERT_FALSE(met[2]);
  EXPECT_EQ(met[2].error().code, ErrorCode::kInvalid);
  EXPECT_EQ(met[2].error().message,
            "the weights of rank 2 have another layout than those of rank 0: tensor 0 is "
            "norm.weight (f32, [8], at byte 0) here and norm.weight (f32, [7], at byte 0) there");
  for (const std::size_t rank : {0u, 1u}) {
    ASSERT_FALSE(met[rank]);
    EXPECT_NE(met[rank].error().code, ErrorCode::kTimedOut);
    EXPECT_TRUE(gang.processes[rank].records->snapshot().empty()) << "NCCL has started";
  }
}

}  // namespace
}  // namespace tandem::app
