// Byte-pair encoding: applies the merges of a vocabulary to one word.
//
// Among all neighbouring pairs that have a merge, the pair with the lowest rank is merged first,
// and the leftmost of equal pairs, until no pair has a merge (Sennrich et al., 2016). The word is a
// linked list with a heap of candidate pairs, so that a word of n symbols costs n log n: repeated
// scans would cost n², which a hostile prompt without spaces could exploit.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace tandem::model {

// Filled once by add(); apply() may then be called from several threads at once.
class MergeTable {
 public:
  struct Merge {
    std::int32_t rank;
    std::int32_t id;  // the merged token
  };

  // A lower rank is merged earlier. A pair that is added twice keeps its last rank, as in the
  // reference.
  void add(std::int32_t left, std::int32_t right, Merge merge) {
    merges_[key(left, right)] = merge;
  }

  // Merges `symbols`, which are token ids, in place until no neighbouring pair has a merge.
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

}  // namespace tandem::model
