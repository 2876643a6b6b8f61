// Byte-pair encoding: the merges of a vocabulary applied to one word.
//
// Of all neighbouring pairs that have a merge the one with the lowest rank goes first, the leftmost
// of equals, until none is left (Sennrich et al., 2016). With a heap over a linked list, so a word
// of n symbols costs n log n, however long a hostile prompt makes it.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace tandem::actors {

class MergeTable {
 public:
  struct Merge {
    std::int32_t rank;
    std::int32_t id;  // of the merged token
  };

  // Earlier merges rank first; a pair given twice keeps its last rank, as in the reference.
  void add(std::int32_t left, std::int32_t right, Merge merge) {
    merges_[key(left, right)] = merge;
  }

  // Merges `symbols` in place as far as possible.
  void apply(std::vector<std::int32_t>& symbols) const;

 private:
  static std::uint64_t key(std::int32_t left, std::int32_t right) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
           static_cast<std::uint32_t>(right);
  }
  const Merge* find(std::int32_t left, std::int32_t right) const {
    const auto at = merges_.find(key(left, right));
    return at == merges_.end() ? nullptr : &at->second;
  }

  std::unordered_map<std::uint64_t, Merge> merges_;
};

}  // namespace tandem::actors
