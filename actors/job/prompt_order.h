// The order in which training visits the prompts of a data set: an endless sequence, from which the
// exchange takes the prompt at each position. Where the job mixes data sets by weights, the turns
// of the sources follow a fixed cycle, and each source has an order of its own. Nothing here knows
// what a prompt is.
//
//   DS-1  The order of an epoch is a pure function of (seed, epoch, size) and a permutation.
//   DS-2  Among the first p positions each source has its share of p, rounded down or up.
//   DS-3  The prompts of a source have each come k times before one of them comes a (k+1)th time.
//   DS-4  The prompt at a position is a pure function of the position and of what the order was
//         made from: earlier calls change nothing, so that a run repeats, and goes on as it began.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tandem::job {

// Indices 0 … size-1 in the order of `epoch`; shuffle false gives file order. DS-1.
std::vector<std::uint32_t> epoch_order(std::uint64_t seed, std::uint64_t epoch, std::uint32_t size,
                                       bool shuffle);

// Shares are kept as whole parts of so many.
inline constexpr std::int64_t kMixtureParts = 100'000;
inline constexpr std::size_t kMixtureSourcesMax = 256;

// One position of a cycle.
struct MixtureTurn {
  std::uint32_t source = 0;  // whose turn it is
  std::uint32_t before = 0;  // the turns that the source has earlier in the cycle
};

// The turns of one cycle for sources with these weights, which are positive. The cycle has at most
// kMixtureParts turns; a share is rounded to a whole part of these, at least one. DS-2.
std::vector<MixtureTurn> mixture_cycle(std::span<const double> weights);

// The prompts that share one weight.
struct PromptSource {
  std::string name;
  double weight = 1;
  std::vector<std::uint32_t> prompts;  // their indices in the data set, at least one
};

// Used by one thread: it keeps the orders of the epochs that were asked for last, four bytes for
// each prompt and epoch.
class PromptOrder {
 public:
  // All prompts 0 … size-1 alike.
  PromptOrder(std::uint64_t seed, bool shuffle, std::uint32_t size);
  // A mixture of `sources`, at least one.
  PromptOrder(std::uint64_t seed, bool shuffle, std::vector<PromptSource> sources);

  // The index of the prompt at `position`, from 0.
  std::uint32_t at(std::int64_t position);

 private:
  struct EpochOrder {
    std::int64_t epoch = -1;
    std::vector<std::uint32_t> indices;
  };
  // A source with the orders of two neighbouring epochs: positions near their border may be asked
  // for in any order.
  struct Source {
    std::uint64_t seed = 0;
    std::uint32_t size = 0;
    std::int64_t turns = 1;              // in a cycle
    std::vector<std::uint32_t> prompts;  // empty: their indices are 0 … size-1
    std::array<EpochOrder, 2> orders;
  };

  bool shuffle_;
  std::vector<MixtureTurn> cycle_;
  std::vector<Source> sources_;
};

}  // namespace tandem::job
