// Free pages are a stack. Idle pages are a doubly linked list inside the array of pages, from the
// oldest to the newest, around a sentinel behind the last page: a page leaves the middle of the
// list in constant time when a sequence uses it again.
#include "scheduler/batch/page_pool.h"

#include <algorithm>

#include "runtime/base/check.h"

namespace tandem::scheduler {

std::int32_t pages_for(std::int32_t tokens, std::int32_t page_tokens) {
  return (tokens + page_tokens - 1) / page_tokens;
}

PagePool::PagePool(std::int32_t pages_total)
    : pages_(static_cast<std::size_t>(pages_total)), sentinel_{pages_total} {
  CHECK(pages_total > 0);
  pages_.push_back({.older = sentinel_, .newer = sentinel_});
  for (std::int32_t i = pages_total; i-- > 0;) free_.push_back({i});  // page 0 is given first
}

const PagePool::Page& PagePool::at(PageId page) const {
  CHECK(page.value >= 0 && page < sentinel_);
  return pages_[static_cast<std::size_t>(page.value)];
}

PagePool::Page& PagePool::at(PageId page) {
  return const_cast<Page&>(static_cast<const PagePool*>(this)->at(page));
}

std::optional<PageId> PagePool::allocate() {
  if (free_.empty()) return std::nullopt;
  const PageId page = free_.back();
  free_.pop_back();
  at(page).references = 1;
  return page;
}

void PagePool::retain(PageId page) {
  Page& p = at(page);
  CHECK(p.references > 0 || p.cached);
  // A cached page without references is in the idle list (PP-1).
  if (p.references++ == 0) unlink_idle(page);
}

void PagePool::release(PageId page) {
  Page& p = at(page);
  CHECK(p.references > 0);
  if (--p.references > 0) return;
  if (p.cached) {
    link_idle(page);
  } else {
    free_.push_back(page);
  }
}

void PagePool::mark_cached(PageId page) {
  // A page gets content only while a table lists it.
  CHECK(at(page).references > 0);
  at(page).cached = true;
}

void PagePool::unmark_cached(PageId page) {
  Page& p = at(page);
  CHECK(p.cached);
  p.cached = false;
  if (p.references > 0) return;
  unlink_idle(page);
  free_.push_back(page);
}

std::optional<PageId> PagePool::oldest_idle() const {
  if (idle_ == 0) return std::nullopt;
  return pages_.back().newer;
}

void PagePool::link_idle(PageId page) {
  Page& sentinel = pages_.back();
  Page& p = at(page);
  p.older = sentinel.older;
  p.newer = sentinel_;
  pages_[static_cast<std::size_t>(p.older.value)].newer = page;
  sentinel.older = page;
  ++idle_;
}

void PagePool::unlink_idle(PageId page) {
  const Page& p = at(page);
  pages_[static_cast<std::size_t>(p.older.value)].newer = p.newer;
  pages_[static_cast<std::size_t>(p.newer.value)].older = p.older;
  --idle_;
}

void PagePool::check() const {
  std::int32_t referred = 0, idle = 0;
  for (std::int32_t i = 0; i < total(); ++i) {
    const Page& p = at({i});
    CHECK(p.references >= 0);
    referred += p.references > 0;
    idle += p.references == 0 && p.cached;
  }
  CHECK(idle == idle_ && "PP-1");
  CHECK(referred + idle + free() == total() && "PP-1");
  std::int32_t listed = 0;
  for (PageId page = pages_.back().newer; page != sentinel_; page = at(page).newer) {
    CHECK(at(page).references == 0 && at(page).cached && "PP-1");
    ++listed;
  }
  CHECK(listed == idle_ && "PP-1");
}

PageTable fork(PagePool& pool, const PageTable& table) {
  for (const PageId page : table) pool.retain(page);
  return table;
}

void release_table(PagePool& pool, PageTable& table) {
  for (; !table.empty(); table.pop_back()) pool.release(table.back());
}

std::int32_t pages_alone(const PagePool& pool, const PageTable& table) {
  return static_cast<std::int32_t>(
      std::ranges::count_if(table, [&pool](PageId page) { return pool.references(page) == 1; }));
}

bool tail_shared(const PagePool& pool, const PageTable& table, const Fill& fill) {
  if (fill.tokens_cached % fill.page_tokens == 0) return false;  // the next token opens a page
  const auto tail = static_cast<std::size_t>(fill.tokens_cached / fill.page_tokens);
  CHECK(tail < table.size());
  return pool.references(table[tail]) > 1;
}

}  // namespace tandem::scheduler
