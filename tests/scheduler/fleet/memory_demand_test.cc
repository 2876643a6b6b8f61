#include "scheduler/fleet/memory_demand.h"

#include <gtest/gtest.h>

namespace tandem::scheduler {
namespace {

constexpr std::int64_t kMib = std::int64_t{1} << 20;

PagedMemory pages(std::int64_t most, double share, std::int32_t sharers = 1) {
  return {.name = "KV pages",
          .page_bytes = kMib,
          .pages_min = 2,
          .pages_max = most,
          .share = share,
          .sharers = sharers,
          .share_key = "rollout.gpu_memory_utilization"};
}

TEST(MemoryDemand, ReservesAllThatLastsAndTheLargestPeak) {  // ME-1
  MemoryDemand demand{.rows = {{"weights", 10 * kMib},
                               {"restore", 5 * kMib, MemoryUse::kPeak},
                               {"gradients", 7 * kMib},
                               {"checkpoint", 3 * kMib, MemoryUse::kPeak}},
                      .paged = pages(4, 1)};
  settle_pages(demand, 0);
  EXPECT_EQ(paged_bytes(demand), 4 * kMib) << "as many as are useful where no node is known";
  EXPECT_EQ(reserved_bytes(demand), (10 + 7 + 5 + 4) * kMib);
  EXPECT_EQ(reserved_bytes({}), 0);
}

TEST(MemoryDemand, PagesTakeTheirShareOfTheNodeAndNoMoreThanIsUseful) {  // ME-2
  MemoryDemand demand{.rows = {}, .paged = pages(100, 0.5, 2)};
  settle_pages(demand, 64 * kMib);
  EXPECT_EQ(demand.paged->pages, 16) << "half of 64, for two";
  settle_pages(demand, 640 * kMib);
  EXPECT_EQ(demand.paged->pages, 100);
  settle_pages(demand, kMib);
  EXPECT_EQ(demand.paged->pages, 0);
  MemoryDemand plain{.rows = {{"weights", 3}}, .paged = {}};
  settle_pages(plain, kMib);
  EXPECT_EQ(paged_bytes(plain), 0);
}

TEST(MemoryDemand, TheTableNamesEveryRowAndWhatIsReserved) {
  MemoryDemand learner{.rows = {{"restore", 5 * kMib, MemoryUse::kPeak}, {"weights", 10 * kMib}},
                       .paged = {}};
  MemoryDemand rollout{.rows = {{"weights", kMib + 1}}, .paged = pages(8, 1)};
  settle_pages(rollout, 0);
  const std::vector<RoleMemory> roles{
      {"rollout", 2, rollout}, {"learner", 1, learner}, {"reward", 1, {}}};
  EXPECT_EQ(memory_table(roles),
            "rollout  weights                2 MiB\n"
            "         KV pages               8 MiB\n"
            "         reserved              10 MiB  x 2 ranks\n"
            "learner  weights               10 MiB\n"
            "         at its peak: restore   5 MiB\n"
            "         reserved              15 MiB\n"
            "all      reserved              34 MiB\n");
  EXPECT_EQ(memory_table({}), "");
}

}  // namespace
}  // namespace tandem::scheduler
