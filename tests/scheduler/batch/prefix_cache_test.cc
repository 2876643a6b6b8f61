// The prefix cache by examples, and then random sequences over a small pool, in which each must
// read its own tokens.
#include "scheduler/batch/prefix_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "runtime/base/rng.h"

namespace tandem::scheduler {
namespace {

constexpr std::int32_t kPageTokens = 4;
using Tokens = std::vector<TokenId>;

Tokens iota(TokenId first, std::size_t count) {
  Tokens tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

PageTable pages(PrefixCache& cache, std::int32_t count) {
  PageTable table;
  while (std::ssize(table) < count) table.push_back(*cache.allocate());
  return table;
}

TEST(PrefixCache, MatchesTheLongestRunOfFullPages) {
  PagePool pool(8);
  PrefixCache cache(pool, kPageTokens);
  const Tokens prompt = iota(0, 10);
  PageTable table = pages(cache, 3);
  cache.insert(PolicyVersion{1}, prompt, table);

  Tokens other = iota(0, 12);
  other[6] = 99;  // differs in the second page
  EXPECT_EQ(cache.match(PolicyVersion{1}, other), (PageTable{table[0]}));
  EXPECT_EQ(cache.match(PolicyVersion{1}, iota(0, 12)), (PageTable{table[0], table[1]}));
  EXPECT_EQ(pool.references(table[0]), 3);
  EXPECT_EQ(cache.tokens_queried(), 24);
  EXPECT_EQ(cache.tokens_hit(), 12);
}

TEST(PrefixCache, LeavesTheLastTokenToCompute) {
  PagePool pool(8);
  PrefixCache cache(pool, kPageTokens);
  PageTable table = pages(cache, 2);
  cache.insert(PolicyVersion{1}, iota(0, 8), table);
  EXPECT_EQ(cache.match(PolicyVersion{1}, iota(0, 8)), (PageTable{table[0]}));
  EXPECT_EQ(cache.match(PolicyVersion{1}, iota(0, 9)), table);
}

TEST(PrefixCache, AnotherVersionNeverMatches) {
  PagePool pool(8);
  PrefixCache cache(pool, kPageTokens);
  PageTable table = pages(cache, 2);
  cache.insert(PolicyVersion{1}, iota(0, 8), table);
  EXPECT_TRUE(cache.match(PolicyVersion{2}, iota(0, 9)).empty());
  release_table(pool, table);
  EXPECT_EQ(pool.idle(), 2);
  cache.drop_before(PolicyVersion{2});
  EXPECT_EQ(pool.free(), 8);
  EXPECT_EQ(cache.entries(), 0);
}

TEST(PrefixCache, ReclaimsTheLongestIdleAndOfOneTableTheTailFirst) {
  PagePool pool(3);
  PrefixCache cache(pool, kPageTokens);
  PageTable first = pages(cache, 2);
  const PageId head = first[0];
  cache.insert(PolicyVersion{0}, iota(0, 8), first);
  release_table(pool, first);
  PageTable more = pages(cache, 2);  // one free, one reclaimed
  EXPECT_EQ(cache.match(PolicyVersion{0}, iota(0, 9)), (PageTable{head}));
  EXPECT_FALSE(cache.allocate());
}

TEST(PrefixCache, TheFirstWriteAfterAForkCopiesTheTail) {
  PagePool pool(4);
  PrefixCache cache(pool, kPageTokens);
  PageTable parent = pages(cache, 2);
  PageTable child = fork(pool, parent);
  const Fill fill{.tokens_cached = 6, .page_tokens = kPageTokens};
  const auto copy = unshare_tail(pool, cache, child, fill);
  ASSERT_TRUE(copy);
  EXPECT_EQ(copy->from, parent[1]);
  EXPECT_EQ(child, (PageTable{parent[0], copy->to}));
  EXPECT_FALSE(unshare_tail(pool, cache, parent, fill));  // alone by now
}

// Sequences that write real tokens into model memory, start from cached prefixes, fork, end and
// change version: each must always read its own tokens, computed by the versions it expects.
class Memory {
 public:
  explicit Memory(std::uint64_t seed)
      : rng_(seed),
        pool_(static_cast<std::int32_t>(8 + rng_.below(24))),
        cache_(pool_, kPageTokens),
        content_(static_cast<std::size_t>(pool_.total())) {}

  void run() {
    for (int event = 0; event < 300; ++event) {
      switch (rng_.below(6)) {
        case 0:
        case 1:
          start();
          break;
        case 2:
          fork_one();
          break;
        case 3:
          append();
          break;
        case 4:
          end();
          break;
        case 5:
          if (rng_.below(8) == 0) install();
          break;
      }
      check();
    }
  }

 private:
  struct Cell {
    TokenId token;
    PolicyVersion version;
    bool operator==(const Cell&) const = default;
  };
  struct Sequence {
    std::vector<Cell> cells;
    PageTable table;
  };

  // Draws from a small set, so that prefixes recur.
  Tokens draw_prompt() {
    Tokens prompt = iota(static_cast<TokenId>(100 * rng_.below(2)), 1 + rng_.below(14));
    if (rng_.below(3) == 0) prompt.back() = 7;
    return prompt;
  }

  void start() {
    const Tokens prompt = draw_prompt();
    Sequence seq;
    seq.table = cache_.match(version_, prompt);
    for (std::size_t i = 0; i < seq.table.size() * kPageTokens; ++i)
      seq.cells.push_back({prompt[i], version_});
    for (std::size_t i = seq.cells.size(); i < prompt.size(); ++i)
      if (!write(seq, prompt[i])) return release_table(pool_, seq.table);
    cache_.insert(version_, prompt, seq.table);
    sequences_.push_back(std::move(seq));
  }

  bool write(Sequence& seq, TokenId token) {
    const auto position = static_cast<std::int32_t>(seq.cells.size());
    if (position % kPageTokens == 0) {
      const auto page = cache_.allocate();
      if (!page) return false;
      seq.table.push_back(*page);
      content_[static_cast<std::size_t>(page->value)].clear();
    }
    const Fill fill{position, kPageTokens};
    if (tail_shared(pool_, seq.table, fill) && pool_.available() == 0) return false;
    if (const auto copy = unshare_tail(pool_, cache_, seq.table, fill))
      content_[static_cast<std::size_t>(copy->to.value)] =
          content_[static_cast<std::size_t>(copy->from.value)];
    auto& page = content_[static_cast<std::size_t>(seq.table.back().value)];
    page.resize(static_cast<std::size_t>(position % kPageTokens));  // a copy brings no more
    page.push_back({token, version_});
    seq.cells.push_back({token, version_});
    return true;
  }

  Sequence* any() {
    return sequences_.empty() ? nullptr : &sequences_[rng_.below(sequences_.size())];
  }

  void fork_one() {
    const Sequence* parent = any();
    if (parent) sequences_.push_back({parent->cells, fork(pool_, parent->table)});
  }

  void append() {
    if (Sequence* seq = any()) write(*seq, static_cast<TokenId>(rng_.below(50)));
  }

  void end() {
    Sequence* seq = any();
    if (!seq) return;
    release_table(pool_, seq->table);
    std::swap(*seq, sequences_.back());
    sequences_.pop_back();
  }

  void install() {
    ++version_.value;
    if (rng_.below(2) == 0) cache_.drop_before(version_);
    if (rng_.below(8) == 0) cache_.drop_all();
  }

  void check() {
    pool_.check();
    std::vector<std::int32_t> references(content_.size());
    for (const Sequence& seq : sequences_) {
      ASSERT_EQ(std::ssize(seq.table),
                pages_for(static_cast<std::int32_t>(seq.cells.size()), kPageTokens));
      for (const PageId page : seq.table) ++references[static_cast<std::size_t>(page.value)];
      for (std::size_t i = 0; i < seq.cells.size(); ++i) {
        const PageId page = seq.table[i / kPageTokens];
        const auto& cells = content_[static_cast<std::size_t>(page.value)];
        ASSERT_LT(i % kPageTokens, cells.size());
        ASSERT_EQ(cells[i % kPageTokens], seq.cells[i]) << "PC-1";
      }
    }
    for (std::int32_t i = 0; i < pool_.total(); ++i)
      ASSERT_EQ(pool_.references({i}), references[static_cast<std::size_t>(i)]) << "PP-2";
  }

  Rng rng_;
  PagePool pool_;
  PrefixCache cache_;
  std::vector<std::vector<Cell>> content_;  // by page
  std::vector<Sequence> sequences_;
  PolicyVersion version_{0};
};

TEST(PrefixCacheProperty, EverySequenceReadsItsOwnTokens) {  // PC-1, PC-2, PP-2
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed=" + std::to_string(seed));
    Memory(seed).run();
    if (::testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace tandem::scheduler
