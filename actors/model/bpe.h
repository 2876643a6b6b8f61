// Byte-pair encoding: applies the merges of a vocabulary to one word.
//
// Among all neighbouring pairs that have a merge, the pair with the lowest rank is merged first,
// and the leftmost of equal pairs, until no pair has a merge (Sennrich et al., 2016). A short word
// is scanned for each merge. A long one is a linked list with a heap of candidate pairs, so that a
// word of n symbols costs n log n: repeated scans would cost n², which a hostile prompt without
// spaces could exploit, and every prompt where a tokenizer cuts no words, as Llama 2's.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
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
  void add(std::int32_t left, std::int32_t right, Merge merge);
  // Promises that no merge joins `symbol`, or a token that begins with it, to a token on its left
  // that ends otherwise. Words are then cut there, which changes no result and makes long texts
  // faster.
  void never_joins_left(std::int32_t symbol) { word_start_ = symbol; }

  // Merges `symbols`, which are token ids, in place until no neighbouring pair has a merge.
  void apply(std::vector<std::int32_t>& symbols) const;

 private:
  // An entry of an open hash table with linear probing, at most half full.
  struct Slot {
    std::uint64_t key = kEmpty;
    Merge merge{};
  };
  static constexpr std::uint64_t kEmpty = ~std::uint64_t{0};  // ids are not negative

  static std::uint64_t key(std::int32_t left, std::int32_t right) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
           static_cast<std::uint32_t>(right);
  }
  std::size_t place_of(std::uint64_t key) const;  // of the key, or of the empty slot for it
  const Merge* find(std::int32_t left, std::int32_t right) const;
  void grow();

  // Each merges one word in place and returns how many symbols are left, at its front.
  std::size_t merge_short(std::span<std::int32_t> word) const;
  std::size_t merge_long(std::span<std::int32_t> word) const;

  std::vector<Slot> slots_;
  std::size_t used_ = 0;
  std::optional<std::int32_t> word_start_;
};

}  // namespace tandem::model
