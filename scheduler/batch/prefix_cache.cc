// An entry's key hashes the key of the page before it and the page's own tokens; the first page's
// parent is derived from the version. So one lookup per page compares a whole prefix: where the
// parent entry matched, equal parent keys stand for equal prefixes, and only the page's own tokens
// are compared.
#include "scheduler/batch/prefix_cache.h"

#include <algorithm>

#include "runtime/base/check.h"
#include "runtime/base/digest.h"
#include "runtime/base/rng.h"

namespace tandem::scheduler {

PrefixCache::PrefixCache(PagePool& pool, std::int32_t page_tokens)
    : pool_(pool), page_tokens_(page_tokens), key_of_page_(static_cast<std::size_t>(pool.total())) {
  CHECK(page_tokens > 0);
}

PrefixCache::Key PrefixCache::root(PolicyVersion version) const {
  return derive_seed(static_cast<std::uint64_t>(version.value), "prefix");
}

PrefixCache::Key PrefixCache::next(Key parent, std::span<const TokenId> page) const {
  return derive_seed(parent, {checksum64(std::as_bytes(page))});
}

bool PrefixCache::is(const Entry& entry, PolicyVersion version, Key parent,
                     std::span<const TokenId> page) const {
  return entry.version == version && entry.parent == parent &&
         std::ranges::equal(entry.tokens, page);
}

PageTable PrefixCache::match(PolicyVersion version, std::span<const TokenId> tokens) {
  PageTable table;
  tokens_queried_ += std::ssize(tokens);
  const auto page_tokens = static_cast<std::size_t>(page_tokens_);
  Key parent = root(version);
  // `<` and not `<=`: the last token stays to be computed even where it ends a page.
  for (std::size_t begin = 0; begin + page_tokens < tokens.size(); begin += page_tokens) {
    const auto page = tokens.subspan(begin, page_tokens);
    const Key key = next(parent, page);
    const auto found = entries_.find(key);
    if (found == entries_.end() || !is(found->second, version, parent, page)) break;
    pool_.retain(found->second.page);
    table.push_back(found->second.page);
    parent = key;
  }
  tokens_hit_ += std::ssize(table) * page_tokens_;
  return table;
}

void PrefixCache::insert(PolicyVersion version, std::span<const TokenId> tokens,
                         const PageTable& table) {
  const auto page_tokens = static_cast<std::size_t>(page_tokens_);
  const std::size_t pages = tokens.size() / page_tokens;
  CHECK(pages <= table.size());
  Key parent = root(version);
  for (std::size_t i = 0; i < pages; ++i) {
    const auto page = tokens.subspan(i * page_tokens, page_tokens);
    const Key key = next(parent, page);
    const auto [at, fresh] = entries_.try_emplace(key);
    Entry& entry = at->second;
    if (fresh) {
      CHECK(!pool_.cached(table[i]));  // a page has one content
      entry = {version, parent, {page.begin(), page.end()}, table[i]};
      pool_.mark_cached(table[i]);
      key_of_page_[static_cast<std::size_t>(table[i].value)] = key;
    } else if (!is(entry, version, parent, page)) {
      return;  // a collision: this prefix stays uncached
    }
    parent = key;
  }
}

std::optional<PageId> PrefixCache::allocate() {
  if (const auto page = pool_.allocate()) return page;
  const auto idle = pool_.oldest_idle();
  if (!idle) return std::nullopt;
  // The oldest idle page becomes free, so the second allocate() succeeds (PC-2).
  forget(*key_of_page_[static_cast<std::size_t>(idle->value)]);
  return pool_.allocate();
}

void PrefixCache::forget(Key key) {
  const auto at = entries_.find(key);
  CHECK(at != entries_.end());
  const PageId page = at->second.page;
  key_of_page_[static_cast<std::size_t>(page.value)].reset();
  entries_.erase(at);
  pool_.unmark_cached(page);
}

void PrefixCache::drop_before(PolicyVersion version) {
  for (auto next = entries_.begin(); next != entries_.end();) {
    const auto at = next++;
    if (at->second.version < version) forget(at->first);
  }
}

void PrefixCache::drop_all() {
  while (!entries_.empty()) forget(entries_.begin()->first);
}

std::optional<CopyPage> unshare_tail(PagePool& pool, PrefixCache& cache, PageTable& table,
                                     const Fill& fill) {
  if (!tail_shared(pool, table, fill)) return std::nullopt;
  PageId& tail = table[static_cast<std::size_t>(fill.tokens_cached / fill.page_tokens)];
  const std::optional<PageId> own = cache.allocate();
  CHECK(own.has_value());
  const CopyPage copy{tail, *own};
  // Others still refer to the page, so its content stays for the caller's copy.
  pool.release(tail);
  tail = *own;
  return copy;
}

}  // namespace tandem::scheduler
