// KV pages: who refers to each, and which are free. Indices only; the memory is the engine's.
//
// A sequence's page table lists the pages of its tokens in order; page_tokens (rollout.block_size)
// tokens lie in each, the last one partly filled. The n sequences of a group refer to the same
// prompt pages (fork); a page that two refer to is never written, so the partly filled last one is
// copied before the first write (unshare_tail in prefix_cache.h). Not thread-safe; no policy.
//
// PP-1  Every page is in exactly one state: free, referred to, or idle (cached, unreferenced).
// PP-2  references(p) is the number of tables that list p.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/base/ids.h"

namespace tandem::scheduler {

using PageId = Id<struct PageTag, std::int32_t>;  // in [0, total)
using PageTable = std::vector<PageId>;

// Pages that `tokens` tokens fill, the last one partly.
std::int32_t pages_for(std::int32_t tokens, std::int32_t page_tokens);

class PagePool {
 public:
  explicit PagePool(std::int32_t pages_total);

  std::optional<PageId> allocate();  // a free page, with one reference; idle ones are not touched
  void retain(PageId page);          // of a page that is referred to, or idle
  void release(PageId page);         // the last release frees it, or makes it idle if it is cached

  // A cached page keeps its content when nobody refers to it, until it is reclaimed.
  void mark_cached(PageId page);
  void unmark_cached(PageId page);  // an idle one becomes free
  std::optional<PageId> oldest_idle() const;

  std::int32_t references(PageId page) const { return at(page).references; }
  bool cached(PageId page) const { return at(page).cached; }
  std::int32_t total() const { return sentinel_.value; }
  std::int32_t free() const { return static_cast<std::int32_t>(free_.size()); }
  std::int32_t idle() const { return idle_; }
  std::int32_t available() const { return free() + idle(); }  // what allocation can still give

  void check() const;  // PP-1, by recount

 private:
  struct Page {
    std::int32_t references = 0;
    bool cached = false;
    PageId older, newer;  // neighbours in the idle list, while idle
  };

  const Page& at(PageId page) const;
  Page& at(PageId page);
  void link_idle(PageId page);  // as the newest
  void unlink_idle(PageId page);

  std::vector<Page> pages_;  // and, last, the idle list's sentinel: its `newer` is the oldest
  PageId sentinel_;
  std::vector<PageId> free_;
  std::int32_t idle_ = 0;
};

// Another table over the same pages.
PageTable fork(PagePool& pool, const PageTable& table);

// Releases a table from its tail, so that of a cached prefix the longer part is reclaimed first,
// and empties it.
void release_table(PagePool& pool, PageTable& table);

// Pages of `table` that only it refers to: what releasing it makes available.
std::int32_t pages_alone(const PagePool& pool, const PageTable& table);

// Whether the next token would be written into a page that others refer to.
struct Fill {
  std::int32_t tokens_cached;
  std::int32_t page_tokens;
};
bool tail_shared(const PagePool& pool, const PageTable& table, const Fill& fill);

}  // namespace tandem::scheduler
