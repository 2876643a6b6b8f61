// A page of `tandem get groups` costs the same whether twelve groups live or a hundred thousand.
//
// Tests actors/exchange/run_report.h, scheduler/fleet/ledger.h.
#include <gtest/gtest.h>

#include <cstdio>
#include <utility>

#include "tests/actors/exchange/begun_core.h"
#include "tests/allocations.h"

namespace tandem::exchange {
namespace {

constexpr std::size_t kPage = 10;

// How many groups live, and how many allocations a page takes that begins in their midst.
std::pair<std::size_t, std::size_t> live_and_cost(std::int64_t groups_per_step) {
  BegunCore core(groups_per_step);
  core.begin();
  const auto live = static_cast<std::size_t>(core.core_.ledger().counters().live);
  const std::size_t before = test::allocations();
  const auto page = core.core_.groups({.after = live / 2, .limit = kPage}, core.now_);
  const std::size_t cost = test::allocations() - before;
  EXPECT_EQ(page.size(), kPage);
  EXPECT_EQ(page.front().group, live / 2 + 1);
  return {live, cost};
}

TEST(GroupsPage, CostsTheSameAmongAHundredThousand) {
  const auto [few, few_cost] = live_and_cost(8);
  const auto [many, many_cost] = live_and_cost(33'334);
  std::printf("%zu allocations among %zu groups, %zu among %zu\n", few_cost, few, many_cost, many);
  EXPECT_GE(many, 100'000u);
  EXPECT_LE(many_cost, few_cost + kPage);
}

}  // namespace
}  // namespace tandem::exchange
