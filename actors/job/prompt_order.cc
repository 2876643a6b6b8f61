// The order of an epoch is a permutation drawn from a derived seed (DS-1), so that it depends on
// the seed, the epoch and the size alone and not on earlier draws.
//
// A mixture could draw the source of each position, as the probabilities of Hugging Face's
// interleave_datasets do. A batch of 64 with a share of 0.1 would then hold anything from 1 to 13
// prompts of it. Here the turns are spread evenly instead: the share of each batch is exact but for
// rounding, and no seed is needed. The turns of a source with c of the L turns of a cycle are jobs
// of one slot each, the i-th to be run from slot floor(iL/c) on and before slot ceil((i+1)L/c).
// Running the one with the earliest end first meets all these ends, since the jobs fill the slots
// exactly (Baruah et al., "Proportionate progress", Algorithmica 1996); that is DS-2.
#include "actors/job/prompt_order.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/rng.h"

namespace tandem::job {
namespace {

std::vector<std::uint32_t> shuffled(std::uint64_t seed, std::uint32_t size) {
  std::vector<std::uint32_t> order(size);
  std::iota(order.begin(), order.end(), 0u);
  Rng rng(seed);
  shuffle(std::span(order), rng);
  return order;
}

// How many turns of a cycle each weight has, in lowest terms. Parts that rounding down leaves over
// go to the greatest remainders.
std::vector<std::int64_t> turns_of(std::span<const double> weights) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<std::int64_t> turns;
  std::vector<std::pair<double, std::size_t>> remainders;
  for (const double weight : weights) {
    CHECK(weight > 0);
    const double exact = weight / sum * static_cast<double>(kMixtureParts);
    turns.push_back(std::max<std::int64_t>(1, static_cast<std::int64_t>(std::floor(exact))));
    remainders.emplace_back(static_cast<double>(turns.back()) - exact, remainders.size());
  }
  std::ranges::sort(remainders);
  std::int64_t left = kMixtureParts - std::accumulate(turns.begin(), turns.end(), std::int64_t{0});
  for (std::size_t i = 0; left > 0; --left, i = (i + 1) % remainders.size())
    ++turns[remainders[i].second];
  std::int64_t divisor = 0;
  for (const std::int64_t count : turns) divisor = std::gcd(divisor, count);
  for (std::int64_t& count : turns) count /= divisor;
  return turns;
}

}  // namespace

std::vector<std::uint32_t> epoch_order(std::uint64_t seed, std::uint64_t epoch, std::uint32_t size,
                                       bool shuffle) {
  if (shuffle) return shuffled(derive_seed(derive_seed(seed, "epoch"), {epoch}), size);
  std::vector<std::uint32_t> order(size);
  std::iota(order.begin(), order.end(), 0u);
  return order;
}

std::vector<MixtureTurn> mixture_cycle(std::span<const double> weights) {
  CHECK(!weights.empty() && weights.size() <= kMixtureSourcesMax);
  const std::vector<std::int64_t> turns = turns_of(weights);
  const std::int64_t length = std::accumulate(turns.begin(), turns.end(), std::int64_t{0});
  std::vector<std::int64_t> taken(weights.size());
  std::vector<MixtureTurn> cycle;
  for (std::int64_t slot = 0; slot < length; ++slot) {
    std::size_t next = weights.size();
    std::int64_t next_end = 0;
    for (std::size_t source = 0; source < weights.size(); ++source) {
      const bool released = taken[source] * length < (slot + 1) * turns[source];
      const std::int64_t end = ((taken[source] + 1) * length - 1) / turns[source] + 1;
      if (!released || (next < weights.size() && end >= next_end)) continue;
      next = source;
      next_end = end;
    }
    CHECK(next < weights.size());
    cycle.push_back({.source = static_cast<std::uint32_t>(next),
                     .before = static_cast<std::uint32_t>(taken[next]++)});
  }
  return cycle;
}

PromptOrder::PromptOrder(std::uint64_t seed, bool shuffle, std::uint32_t size)
    : shuffle_(shuffle), cycle_(1), sources_(1) {
  CHECK(size > 0);
  sources_[0].seed = seed;
  sources_[0].size = size;
}

PromptOrder::PromptOrder(std::uint64_t seed, bool shuffle, std::vector<PromptSource> sources)
    : shuffle_(shuffle) {
  std::vector<double> weights;
  for (PromptSource& source : sources) {
    CHECK(!source.prompts.empty());
    weights.push_back(source.weight);
    Source& own = sources_.emplace_back();
    // By the name, so that another source beside it does not change its order.
    own.seed = derive_seed(derive_seed(seed, "mixture"), source.name);
    own.size = static_cast<std::uint32_t>(source.prompts.size());
    own.turns = 0;
    own.prompts = std::move(source.prompts);
  }
  cycle_ = mixture_cycle(weights);
  for (const MixtureTurn& turn : cycle_) ++sources_[turn.source].turns;
}

std::uint32_t PromptOrder::at(std::int64_t position) {
  CHECK(position >= 0);
  const std::int64_t length = std::ssize(cycle_);
  const MixtureTurn turn = cycle_[static_cast<std::size_t>(position % length)];
  Source& source = sources_[turn.source];
  const std::int64_t visit = position / length * source.turns + turn.before;
  const std::int64_t epoch = visit / source.size;
  EpochOrder& order = source.orders[static_cast<std::size_t>(epoch % 2)];
  if (order.epoch != epoch)
    order = {epoch,
             epoch_order(source.seed, static_cast<std::uint64_t>(epoch), source.size, shuffle_)};
  const std::uint32_t index = order.indices[static_cast<std::size_t>(visit % source.size)];
  return source.prompts.empty() ? index : source.prompts[index];
}

}  // namespace tandem::job
