// A page of `tandem get groups` costs the same whether twelve groups live or a hundred thousand,
// and whether one rollout is up or a thousand.
//
// Tests actors/exchange/run_report.h, scheduler/fleet/ledger.h.
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/actors/exchange/begun_core.h"
#include "tests/allocations.h"

namespace tandem::exchange {
namespace {

constexpr std::size_t kPage = 10;

// How many allocations a page takes that begins behind the group `after`.
std::size_t cost_of_page(const BegunCore& core, std::uint64_t after) {
  const std::size_t before = test::allocations();
  const auto page = core.core_.groups({.after = after, .limit = kPage}, core.now_);
  const std::size_t cost = test::allocations() - before;
  EXPECT_EQ(page.size(), kPage);
  EXPECT_EQ(page.front().group, after + 1);
  return cost;
}

TEST(GroupsPage, CostsTheSameAmongAHundredThousand) {
  BegunCore few(8), many(33'334);
  few.begin();
  many.begin();
  const std::int64_t live = many.core_.ledger().counters().live;
  EXPECT_GE(live, 100'000);
  const std::size_t few_cost = cost_of_page(few, 10);
  const std::size_t many_cost = cost_of_page(many, static_cast<std::uint64_t>(live) / 2);
  std::printf("%zu allocations among few groups, %zu among %ld\n", few_cost, many_cost, live);
  EXPECT_EQ(many_cost, few_cost);
}

// The rollouts have installed no version yet, so the first one keeps all leases.
TEST(GroupsPage, CostsTheSameWithAThousandRollouts) {
  BegunCore core(8);
  core.begin();
  const std::size_t alone = cost_of_page(core, 0);
  const auto page = core.core_.groups({.limit = kPage}, core.now_);
  EXPECT_EQ(page.front().holder, kFirstRollout.name);
  for (std::uint64_t i = 1; i < 1000; ++i)
    core.take(messages::RolloutUp{
        {"job-1/rollout/" + std::to_string(i), Incarnation{kFirstReward.incarnation.value + i}},
        100});
  const std::size_t among_many = cost_of_page(core, 0);
  std::printf("%zu allocations with one rollout, %zu with a thousand\n", alone, among_many);
  EXPECT_EQ(among_many, alone);
  EXPECT_EQ(core.core_.groups({.limit = kPage}, core.now_).front().holder, kFirstRollout.name);
}

}  // namespace
}  // namespace tandem::exchange
