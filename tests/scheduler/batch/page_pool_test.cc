#include "scheduler/batch/page_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "runtime/base/rng.h"

namespace tandem::scheduler {
namespace {

TEST(PagePool, GivesEachPageOnceAndTakesItBackAtTheLastRelease) {
  PagePool pool(2);
  const PageId a = *pool.allocate(), b = *pool.allocate();
  EXPECT_NE(a, b);
  EXPECT_FALSE(pool.allocate());
  pool.retain(a);
  pool.release(a);
  EXPECT_FALSE(pool.allocate());
  pool.release(a);
  EXPECT_EQ(pool.allocate(), a);
}

TEST(PagePool, ACachedPageIsIdleNotFree) {
  PagePool pool(2);
  const PageId page = *pool.allocate();
  pool.mark_cached(page);
  pool.release(page);
  EXPECT_EQ(pool.free(), 1);
  EXPECT_EQ(pool.idle(), 1);
  EXPECT_EQ(pool.available(), 2);
  pool.retain(page);
  EXPECT_EQ(pool.idle(), 0);
  EXPECT_EQ(pool.references(page), 1);
  pool.release(page);
  EXPECT_EQ(pool.oldest_idle(), page);
  pool.unmark_cached(page);
  EXPECT_EQ(pool.free(), 2);
}

TEST(PagePool, ForksShareAndThePartlyFilledTailIsToBeCopied) {
  PagePool pool(4);
  PageTable parent{*pool.allocate(), *pool.allocate()};
  EXPECT_EQ(pages_alone(pool, parent), 2);
  PageTable child = fork(pool, parent);
  EXPECT_EQ(child, parent);
  EXPECT_EQ(pages_alone(pool, child), 0);
  EXPECT_TRUE(tail_shared(pool, child, {.tokens_cached = 5, .page_tokens = 4}));
  EXPECT_FALSE(tail_shared(pool, child, {.tokens_cached = 8, .page_tokens = 4}));  // opens a page
  release_table(pool, parent);
  EXPECT_FALSE(tail_shared(pool, child, {.tokens_cached = 5, .page_tokens = 4}));
  EXPECT_TRUE(parent.empty());
}

TEST(PagePoolDeathTest, MisuseIsABug) {
  PagePool pool(1);
  EXPECT_DEATH(pool.retain(PageId{0}), "references");
  EXPECT_DEATH(pool.release(PageId{0}), "references");
  EXPECT_DEATH(pool.release(PageId{1}), "page");
}

// PP-1, PP-2 against a count of references and a list of idle pages.
TEST(PagePoolProperty, AgreesWithCounting) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed=" + std::to_string(seed));
    Rng rng(seed);
    PagePool pool(static_cast<std::int32_t>(1 + rng.below(12)));
    std::map<PageId, std::int32_t> references;
    std::vector<PageId> idle;  // oldest first
    for (int event = 0; event < 300; ++event) {
      const PageId page{
          static_cast<std::int32_t>(rng.below(static_cast<std::uint64_t>(pool.total())))};
      const bool is_idle = std::ranges::count(idle, page) == 1;
      const bool referred = references.contains(page);
      switch (rng.below(5)) {
        case 0:
          if (const auto given = pool.allocate()) {
            EXPECT_FALSE(references.contains(*given) || std::ranges::count(idle, *given));
            references[*given] = 1;
          } else {
            EXPECT_EQ(std::ssize(references) + std::ssize(idle), pool.total());
          }
          break;
        case 1:
          if (!referred && !is_idle) break;
          pool.retain(page);
          ++references[page];
          std::erase(idle, page);
          break;
        case 2:
          if (!referred) break;
          if (--references[page] == 0) {
            references.erase(page);
            if (pool.cached(page)) idle.push_back(page);
          }
          pool.release(page);
          break;
        case 3:
          if (referred) pool.mark_cached(page);
          break;
        case 4:
          if (!pool.cached(page)) break;
          pool.unmark_cached(page);
          std::erase(idle, page);
          break;
      }
      pool.check();
      for (const auto& [id, count] : references) EXPECT_EQ(pool.references(id), count);
      EXPECT_EQ(pool.idle(), std::ssize(idle));
      EXPECT_EQ(pool.oldest_idle(), idle.empty() ? std::nullopt : std::optional(idle.front()));
    }
  }
}

}  // namespace
}  // namespace tandem::scheduler
