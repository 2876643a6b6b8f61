// Orders of epochs, and mixtures of data sets.
#include "actors/job/prompt_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "runtime/base/rng.h"

namespace tandem::job {
namespace {

// DS-1
TEST(PromptOrder, AnEpochsOrderIsAPermutationOfSeedAndEpochAloneDS1) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    const auto first = epoch_order(seed, 0, 100, true);
    EXPECT_EQ(first, epoch_order(seed, 0, 100, true));
    EXPECT_NE(first, epoch_order(seed, 1, 100, true));
    EXPECT_NE(first, epoch_order(seed + 1, 0, 100, true));
    EXPECT_NE(epoch_order(seed, 1, 100, true), epoch_order(seed + 1, 0, 100, true));
    auto sorted = first;
    std::ranges::sort(sorted);
    EXPECT_EQ(sorted, epoch_order(seed, 7, 100, false));
    EXPECT_EQ(sorted.front(), 0u);
    EXPECT_EQ(sorted.back(), 99u);
  }
}

// DS-4
TEST(PromptOrder, WithoutAMixtureVisitsEpochAfterEpochDS4) {
  PromptOrder order(17, true, 10);
  for (const std::int64_t position : {0, 9, 10, 25, 7, 11, 12345, 3})
    EXPECT_EQ(order.at(position), epoch_order(17, static_cast<std::uint64_t>(position / 10), 10,
                                              true)[static_cast<std::size_t>(position % 10)])
        << position;
}

std::vector<double> random_weights(Rng& rng) {
  std::vector<double> weights(1 + rng.below(8));
  for (double& weight : weights)
    weight = rng.below(2) == 0 ? static_cast<double>(1 + rng.below(9)) : 0.01 + rng.unit();
  return weights;
}

// DS-2, for the shares that the cycle has, and these are those of the weights but for rounding.
TEST(Mixture, EachSourceHasItsShareOfEveryPrefixDS2) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const std::vector<double> weights = random_weights(rng);
    const std::vector<MixtureTurn> cycle = mixture_cycle(weights);
    const std::int64_t length = std::ssize(cycle);
    ASSERT_LE(length, kMixtureParts);
    std::vector<std::int64_t> turns(weights.size()), taken(weights.size());
    for (const MixtureTurn& turn : cycle) ++turns[turn.source];
    double sum = 0;
    for (const double weight : weights) sum += weight;
    for (std::size_t s = 0; s < weights.size(); ++s)
      EXPECT_NEAR(static_cast<double>(turns[s]) / static_cast<double>(length), weights[s] / sum,
                  1.0 / kMixtureParts);
    for (std::int64_t p = 0; p < length; ++p) {
      const MixtureTurn& turn = cycle[static_cast<std::size_t>(p)];
      bool holds = turn.before == taken[turn.source]++;
      for (std::size_t s = 0; s < weights.size(); ++s) {
        const std::int64_t off = taken[s] * length - (p + 1) * turns[s];  // times length
        holds = holds && -length < off && off < length;
      }
      ASSERT_TRUE(holds) << p;
    }
  }
  EXPECT_EQ(mixture_cycle(std::vector{0.7, 0.3}).size(), 10u) << "in lowest terms";
}

// Sources "a" with the even prompts, and "b" with the three odd ones below 7.
std::vector<PromptSource> two_sources() {
  return {{.name = "a", .weight = 0.7, .prompts = {0, 2, 4, 6, 8, 10, 12}},
          {.name = "b", .weight = 0.3, .prompts = {1, 3, 5}}};
}

// DS-3
TEST(Mixture, APromptComesAgainWhenAllOfItsSourceHaveComeDS3) {
  PromptOrder order(5, true, two_sources());
  std::map<std::uint32_t, int> times;
  for (std::int64_t position = 0; position < 2000; ++position) {
    ++times[order.at(position)];
    for (const auto& source : two_sources()) {
      int least = 1 << 30, most = 0;
      for (const std::uint32_t prompt : source.prompts) {
        least = std::min(least, times[prompt]);
        most = std::max(most, times[prompt]);
      }
      ASSERT_LE(most - least, 1) << position;
    }
  }
  EXPECT_EQ(times[0] + times[2] + times[4] + times[6] + times[8] + times[10] + times[12], 1400);
}

// DS-4: an order that is asked from the middle on, as by a run that resumes, or to and fro.
TEST(Mixture, APositionHasItsPromptWhateverWasAskedBeforeDS4) {
  for (const bool shuffle : {true, false}) {
    PromptOrder whole(5, shuffle, two_sources());
    std::vector<std::uint32_t> prompts;
    for (std::int64_t position = 0; position < 500; ++position)
      prompts.push_back(whole.at(position));
    PromptOrder resumed(5, shuffle, two_sources());
    for (std::int64_t position = 250; position < 500; ++position)
      EXPECT_EQ(resumed.at(position), prompts[static_cast<std::size_t>(position)]);
    Rng rng(11);
    for (int i = 0; i < 500; ++i) {
      const std::size_t position = rng.below(500);
      EXPECT_EQ(resumed.at(static_cast<std::int64_t>(position)), prompts[position]) << position;
    }
    PromptOrder other(6, shuffle, two_sources());
    std::vector<std::uint32_t> others;
    for (std::int64_t position = 0; position < 500; ++position)
      others.push_back(other.at(position));
    EXPECT_EQ(others == prompts, !shuffle);
  }
  PromptOrder in_file_order(5, false, two_sources());
  std::vector<std::uint32_t> first;
  for (std::int64_t position = 0; position < 10; ++position)
    first.push_back(in_file_order.at(position));
  EXPECT_EQ(std::set(first.begin(), first.end()).size(), 10u);
  std::erase_if(first, [](std::uint32_t prompt) { return prompt % 2 == 1; });
  EXPECT_TRUE(std::ranges::is_sorted(first));
}

}  // namespace
}  // namespace tandem::job
