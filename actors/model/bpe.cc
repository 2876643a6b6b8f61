#include "actors/model/bpe.h"

#include <queue>
#include <tuple>

namespace tandem::model {
namespace {

constexpr std::int32_t kNone = -1;

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

void MergeTable::apply(std::vector<std::int32_t>& ids) const {
  const auto count = static_cast<std::int32_t>(ids.size());
  if (count < 2 || merges_.empty()) return;
  std::vector<Symbol> symbols;
  symbols.reserve(ids.size());
  for (std::int32_t i = 0; i < count; ++i)
    symbols.push_back({ids[i], i - 1, i + 1 < count ? i + 1 : kNone});

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
  ids.clear();
  for (const Symbol& symbol : symbols)
    if (symbol.id != kNone) ids.push_back(symbol.id);
}

}  // namespace tandem::model
