// Prompt pages that later sequences can use again (rollout.enable_prefix_caching).
//
// A full page is found by the policy version that computed it and by a hash chain over its tokens
// and those of all pages before it. Tokens are compared too, so a colliding hash is a miss and
// never a wrong page. Pages of another version never match: new sequences read only the keys and
// values of the current one. Unreferenced pages stay until room is needed; the least recently
// released one goes first. Where the cache is off, no page is inserted and the other calls work
// alike. Not thread-safe.
//
// PC-1  match() returns pages whose content is exactly (version, tokens).
// PC-2  allocate() fails only if every page is referred to.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "runtime/base/ids.h"
#include "scheduler/batch/page_pool.h"

namespace tandem::scheduler {

using TokenId = std::int32_t;  // an index into the vocabulary

class PrefixCache {
 public:
  // `pool` is borrowed and outlives the cache.
  PrefixCache(PagePool& pool, std::int32_t page_tokens);

  // The longest cached run of full pages at the head of `tokens`, retained for the caller. Leaves
  // at least the last token to compute: its logits are needed.
  PageTable match(PolicyVersion version, std::span<const TokenId> tokens);

  // Caches the full pages of `tokens`, which are in `table`. Precondition: `version` computed every
  // one of them, from pages that `version` computed. Content that is cached already stays in its
  // page.
  void insert(PolicyVersion version, std::span<const TokenId> tokens, const PageTable& table);

  // A page with one reference: a free one, else the longest idle one, which is forgotten.
  std::optional<PageId> allocate();

  void drop_before(PolicyVersion version);  // an installed version makes older pages useless
  void drop_all();                          // a new lineage: the same number names other weights

  // Tokens in all calls of match(), and those that were found; counted as vLLM counts them.
  std::int64_t tokens_queried() const { return tokens_queried_; }
  std::int64_t tokens_hit() const { return tokens_hit_; }
  std::int32_t entries() const { return static_cast<std::int32_t>(entries_.size()); }

 private:
  using Key = std::uint64_t;
  struct Entry {
    PolicyVersion version;
    Key parent;
    std::vector<TokenId> tokens;  // the tokens of this page
    PageId page;
  };

  Key root(PolicyVersion version) const;
  Key next(Key parent, std::span<const TokenId> page) const;
  bool is(const Entry& entry, PolicyVersion version, Key parent,
          std::span<const TokenId> page) const;
  void forget(Key key);

  PagePool& pool_;
  std::int32_t page_tokens_;
  std::map<Key, Entry> entries_;
  std::vector<std::optional<Key>> key_of_page_;
  std::int64_t tokens_queried_ = 0;
  std::int64_t tokens_hit_ = 0;
};

// Call it before a token is written at position `fill.tokens_cached`. Where the page of that
// position is shared, the table gets a page of its own there, and the caller copies `from` to `to`.
// nullopt: no copy is needed. Precondition: tail_shared() implies that a page is available.
struct CopyPage {
  PageId from;
  PageId to;
};
std::optional<CopyPage> unshare_tail(PagePool& pool, PrefixCache& cache, PageTable& table,
                                     const Fill& fill);

}  // namespace tandem::scheduler
