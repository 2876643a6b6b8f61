// Weights that are installed in parts, each when forward says that it needs it.
#include "actors/model/weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "actors/model/decoder.h"
#include "actors/model/parameters.h"
#include "tests/actors/model/tiny_model.h"

namespace tandem::actors {
namespace {

using runtime::Arena;
using runtime::Stream;

// One sequence, and every token's log-probability and entropy.
struct Scored {
  std::vector<float> logprob, entropy;
  bool operator==(const Scored& other) const {
    const auto same = [](const std::vector<float>& a, const std::vector<float>& b) {
      return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
    };
    return same(logprob, other.logprob) && same(entropy, other.entropy);
  }
};

Scored score(const ModelConfig& config, const Weights& weights, const WeightsNeeded& needed = {}) {
  std::vector<std::int32_t> tokens;
  std::vector<LogprobItem> items;
  for (std::int32_t i = 0; i < 20; ++i) {
    tokens.push_back(static_cast<std::int32_t>(i * 7 % config.vocab_size));
    if (i > 0) items.push_back({i - 1, tokens.back()});
  }
  const std::vector<kernels::Segment> segments{{.begin = 0, .len = 20}};
  auto decoder = TrainDecoder::make(config, {.rows_max = 32, .items_max = 32, .positions_max = 32},
                                    runtime::DeviceKind::kCpu);
  Scored scored{std::vector<float>(items.size()), std::vector<float>(items.size())};
  decoder->forward(Stream{}, weights, {tokens, segments, items}, scored.logprob, scored.entropy,
                   needed);
  return scored;
}

Arena not_there(const ModelConfig& config) {
  auto arena = Arena::allocate(make_manifest(config), "no weights");
  std::ranges::fill(arena->f32(), std::numeric_limits<float>::quiet_NaN());
  return *std::move(arena);
}

// Before a part is needed it is no number, and when the next part is needed it is none again (but
// for an embedding that is the head as well).
TEST(Weights, ForwardReadsEachPartOnlyOnceItNeedsIt_DE5) {
  for (const bool tied : {false, true}) {
    SCOPED_TRACE(tied);
    ModelConfig config = testing::tiny_config();
    config.layers = 3;
    config.tie_word_embeddings = tied;
    const Arena master = testing::random_weights(config, 8), none = not_there(config);
    Weights weights = *Weights::allocate(config, WeightsUse::kTraining, runtime::DeviceKind::kCpu);
    weights.install(Stream{}, master.bytes());
    const Scored whole = score(config, weights);
    weights.install(Stream{}, none.bytes());
    EXPECT_TRUE(std::isnan(score(config, weights).logprob.front()));

    std::vector<std::int64_t> ends{0};
    const Scored in_parts = score(config, weights, [&](std::int64_t end) {
      const std::int64_t begin = ends.back();
      EXPECT_GT(end, begin);
      weights.install_master(Stream{}, master, {.begin = begin, .end = end});
      if (ends.size() > (tied ? 2 : 1))
        weights.install_master(Stream{}, none, {.begin = ends[ends.size() - 2], .end = begin});
      ends.push_back(end);
    });
    EXPECT_TRUE(in_parts == whole);
    std::vector<std::int64_t> expected = layer_begins(config);
    expected.insert(expected.begin(), 0);
    expected.push_back(master.flat().elements());
    EXPECT_EQ(ends, expected);
    EXPECT_EQ(std::ssize(ends), config.layers + 3);
  }
}

TEST(Weights, PartsThatCutAParameterAreABug) {
  const ModelConfig config = testing::tiny_config();
  const Arena master = testing::random_weights(config, 8);
  Weights weights = *Weights::allocate(config, WeightsUse::kTraining, runtime::DeviceKind::kCpu);
  const std::int64_t layer = layer_begins(config).front();
  EXPECT_DEATH(weights.install_master(Stream{}, master, {.begin = 0, .end = 10}), "inside");
  EXPECT_DEATH(weights.install_master(Stream{}, master, {.begin = 1, .end = layer}), "inside");
}

}  // namespace
}  // namespace tandem::actors
