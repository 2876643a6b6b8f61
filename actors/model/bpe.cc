#include "actors/model/bpe.h"

#include <algorithm>
#include <array>
#include <limits>
#include <queue>
#include <tuple>
#include <utility>

namespace tandem::model {
namespace {

constexpr std::int32_t kNone = -1;
constexpr std::size_t kShort = 32;  // symbols; a scan is then faster than a heap

// An entry of the linked list. Entries keep their places: the right one of a merged pair stays in
// the array, unlinked.
struct Symbol {
  std::int32_t id;  // kNone once merged into its left neighbour
  std::int32_t previous, next;
};

// A pair of neighbours that has a merge; `position` is that of its left symbol. Candidates are not
// removed from the heap when a merge nearby changes their pair; they are checked when they come up.
struct Candidate {
  std::int32_t rank, position, id;
  bool operator>(const Candidate& other) const {
    return std::tie(rank, position) > std::tie(other.rank, other.position);
  }
};

}  // namespace

std::size_t MergeTable::place_of(std::uint64_t key) const {
  const std::size_t mask = slots_.size() - 1;
  // Fibonacci hashing: the high bits of the product depend on all bits of the key.
  std::size_t at = static_cast<std::size_t>((key * 0x9E3779B97F4A7C15u) >> 32) & mask;
  while (slots_[at].key != key && slots_[at].key != kEmpty) at = (at + 1) & mask;
  return at;
}

const MergeTable::Merge* MergeTable::find(std::int32_t left, std::int32_t right) const {
  const Slot& slot = slots_[place_of(key(left, right))];
  return slot.key == kEmpty ? nullptr : &slot.merge;
}

void MergeTable::grow() {
  std::vector<Slot> old = std::exchange(slots_, {});
  slots_.resize(std::max<std::size_t>(64, old.size() * 2));
  for (const Slot& slot : old)
    if (slot.key != kEmpty) slots_[place_of(slot.key)] = slot;
}

void MergeTable::add(std::int32_t left, std::int32_t right, Merge merge) {
  if ((used_ + 1) * 2 > slots_.size()) grow();
  Slot& slot = slots_[place_of(key(left, right))];
  if (slot.key == kEmpty) ++used_;
  slot = {key(left, right), merge};
}

void MergeTable::apply(std::vector<std::int32_t>& symbols) const {
  if (used_ == 0) return;
  const std::span<std::int32_t> all(symbols);
  std::size_t kept = 0;  // merged symbols lie before this place
  for (std::size_t begin = 0; begin < all.size();) {
    std::size_t end = word_start_ ? begin + 1 : all.size();
    while (end < all.size() && (all[end] != *word_start_ || all[end - 1] == *word_start_)) ++end;
    const auto word = all.subspan(begin, end - begin);
    const std::size_t count = word.size() <= kShort ? merge_short(word) : merge_long(word);
    std::ranges::copy(word.first(count), all.begin() + static_cast<std::ptrdiff_t>(kept));
    kept += count;
    begin = end;
  }
  symbols.resize(kept);
}

std::size_t MergeTable::merge_short(std::span<std::int32_t> word) const {
  constexpr Merge kNoMerge{std::numeric_limits<std::int32_t>::max(), kNone};
  std::array<Merge, kShort> merges;  // of each symbol with its right neighbour
  std::size_t count = word.size();
  const auto look = [&](std::size_t i) {
    const Merge* merge = find(word[i], word[i + 1]);
    merges[i] = merge != nullptr ? *merge : kNoMerge;
  };
  for (std::size_t i = 0; i + 1 < count; ++i) look(i);
  while (count > 1) {
    std::size_t best = 0;
    for (std::size_t i = 1; i + 1 < count; ++i)
      if (merges[i].rank < merges[best].rank) best = i;
    if (merges[best].id == kNone) break;
    word[best] = merges[best].id;
    --count;
    std::copy(word.begin() + static_cast<std::ptrdiff_t>(best) + 2,
              word.begin() + static_cast<std::ptrdiff_t>(count) + 1,
              word.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    for (std::size_t i = best + 1; i + 1 < count; ++i) merges[i] = merges[i + 1];
    if (best > 0) look(best - 1);
    if (best + 1 < count) look(best);
  }
  return count;
}

std::size_t MergeTable::merge_long(std::span<std::int32_t> word) const {
  const auto count = static_cast<std::int32_t>(word.size());
  std::vector<Symbol> symbols;
  symbols.reserve(word.size());
  for (std::int32_t i = 0; i < count; ++i)
    symbols.push_back({word[static_cast<std::size_t>(i)], i - 1, i + 1 < count ? i + 1 : kNone});

  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  const auto propose = [&](std::int32_t left) {
    if (left == kNone || symbols[left].next == kNone) return;
    if (const Merge* merge = find(symbols[left].id, symbols[symbols[left].next].id))
      queue.push({merge->rank, left, merge->id});
  };
  for (std::int32_t i = 0; i + 1 < count; ++i) propose(i);

  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    Symbol& left = symbols[best.position];
    if (left.id == kNone || left.next == kNone) continue;
    Symbol& right = symbols[left.next];
    const Merge* merge = find(left.id, right.id);
    // An earlier merge may have changed one of the two symbols since the pair was proposed. Equal
    // ranks mean the same pair, because each pair has a rank of its own.
    if (merge == nullptr || merge->rank != best.rank) continue;
    left.id = merge->id;
    right.id = kNone;
    left.next = right.next;
    if (left.next != kNone) symbols[left.next].previous = best.position;
    propose(left.previous);
    propose(best.position);
  }
  std::size_t kept = 0;
  for (const Symbol& symbol : symbols)
    if (symbol.id != kNone) word[kept++] = symbol.id;
  return kept;
}

}  // namespace tandem::model
