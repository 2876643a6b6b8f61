// KV pages: how many page tables refer to each, and which are free. Indices only; the engine owns
// the memory.
//
// A sequence's page table lists the pages of its tokens in order. Each page holds page_tokens
// tokens (rollout.block_size); the last page is partly filled. The n sequences of a group refer to
// the same prompt pages (fork). A page that two tables refer to is never written, so the partly
// filled last one is copied before the first write (unshare_tail in prefix_cache.h). Not
// thread-safe. The pool has no policy: callers decide which page to reclaim.
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

  std::optional<PageId> allocate();  // a free page with one reference; idle pages stay
  void retain(PageId page);          // one reference more, to a page that is referred to or idle
  void release(PageId page);         // the last release frees it, or makes it idle if it is cached

  // A cached page keeps its content when no table refers to it, until it is reclaimed
  // (unmark_cached).
  void mark_cached(PageId page);
  void unmark_cached(PageId page);  // an idle page becomes free
  // The page that became idle longest ago: the first to reclaim.
  std::optional<PageId> oldest_idle() const;

  std::int32_t references(PageId page) const { return at(page).references; }
  bool cached(PageId page) const { return at(page).cached; }
  std::int32_t total() const { return sentinel_.value; }
  std::int32_t free() const { return static_cast<std::int32_t>(free_.size()); }
  std::int32_t idle() const { return idle_; }
  // How many pages allocation can still give.
  std::int32_t available() const { return free() + idle(); }

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

  // The last element is the sentinel of the idle list: its `newer` is the oldest idle page.
  std::vector<Page> pages_;
  PageId sentinel_;
  std::vector<PageId> free_;
  std::int32_t idle_ = 0;
};

// Another table over the same pages, each with one reference more.
PageTable fork(PagePool& pool, const PageTable& table);

// Releases a table from its tail, so that of a cached prefix the longer part is reclaimed first,
// and empties it.
void release_table(PagePool& pool, PageTable& table);

// Pages to which `table` alone refers: releasing the table makes so many available.
std::int32_t pages_alone(const PagePool& pool, const PageTable& table);

// Whether the next token would be written into a page to which other tables refer.
struct Fill {
  std::int32_t tokens_cached;
  std::int32_t page_tokens;
};
bool tail_shared(const PagePool& pool, const PageTable& table, const Fill& fill);

}  // namespace tandem::scheduler
