// Weights that are installed in parts, each when forward says that it needs it; and how many copies
// of them there are.
#include "actors/model/weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "actors/model/decoder.h"
#include "actors/model/parameters.h"
#include "runtime/device/memory.h"
#include "tests/actors/model/tiny_model.h"

namespace tandem::model {
namespace {

using device::Arena;
using device::Stream;

// One sequence, and every token's log-probability and entropy.
struct Scored {
  std::vector<float> logprob, entropy, gradients;
  bool operator==(const Scored& other) const {
    const auto same = [](const std::vector<float>& a, const std::vector<float>& b) {
      return a.size() == b.size() &&
             (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
    };
    return same(logprob, other.logprob) && same(entropy, other.entropy) &&
           same(gradients, other.gradients);
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
                                    device::DeviceKind::kCpu);
  Scored scored{std::vector<float>(items.size()), std::vector<float>(items.size()), {}};
  const PackedBatch batch{tokens, segments, items};
  decoder->forward(Stream{}, weights, batch, scored.logprob, scored.entropy, needed);
  if (weights.use() == WeightsUse::kInference || needed) return scored;
  const Arena gradients = *Arena::allocate(make_manifest(config), "gradients");
  const std::vector<float> dlogprob(items.size(), -0.25f);
  decoder->backward(Stream{}, weights, batch, dlogprob, {}, gradients);
  scored.gradients.assign(gradients.f32().begin(), gradients.f32().end());
  return scored;
}

std::size_t matrix_bytes(const ModelConfig& config, std::int64_t n, std::int64_t k) {
  return static_cast<std::size_t>(kernels::packed_elements(config.dtype, n, k)) *
         device::size_bytes(config.dtype);
}

std::size_t packed_bytes(const ModelConfig& config) {
  const std::int64_t H = config.hidden_size, F = config.intermediate_size;
  const std::size_t layer = matrix_bytes(config, config.qkv_width(), H) +
                            matrix_bytes(config, H, config.q_width()) +
                            matrix_bytes(config, 2 * F, H) + matrix_bytes(config, H, F);
  return static_cast<std::size_t>(config.layers) * layer +
         matrix_bytes(config, config.vocab_size, H);
}

Arena not_there(const ModelConfig& config) {
  auto arena = Arena::allocate(make_manifest(config), "no weights");
  std::ranges::fill(arena->f32(), std::numeric_limits<float>::quiet_NaN());
  return *std::move(arena);
}

class WeightsIn : public ::testing::TestWithParam<device::DType> {};
INSTANTIATE_TEST_SUITE_P(Of, WeightsIn, ::testing::ValuesIn(testing::kDTypes),
                         [](const auto& test) { return device::name(test.param); });

// A part holds NaN until it is needed, and again when the next part is needed, except an embedding
// that is the head as well.
TEST_P(WeightsIn, ForwardReadsEachPartOnlyOnceItNeedsIt_DE5) {
  for (const auto& [tied, use] :
       {std::pair(false, WeightsUse::kTraining), std::pair(true, WeightsUse::kTraining),
        std::pair(false, WeightsUse::kTrainingInPlace),
        std::pair(true, WeightsUse::kTrainingInPlace)}) {
    SCOPED_TRACE(tied);
    ModelConfig config = testing::tiny_config(Family::kQwen3, GetParam());
    config.layers = 3;
    config.tie_word_embeddings = tied;
    const Arena master = testing::random_weights(config, 8), none = not_there(config);
    const Arena rounded = testing::published(config, master);
    const Arena rounded_none = testing::published(config, none);
    Weights weights = *Weights::allocate(config, use, device::DeviceKind::kCpu);
    weights.install(Stream{}, rounded.bytes());
    Scored whole = score(config, weights);
    whole.gradients.clear();
    weights.install(Stream{}, rounded_none.bytes());
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

TEST_P(WeightsIn, PartsThatCutAParameterAreABug) {
  const ModelConfig config = testing::tiny_config(Family::kQwen3, GetParam());
  const Arena master = testing::random_weights(config, 8);
  Weights weights = *Weights::allocate(config, WeightsUse::kTraining, device::DeviceKind::kCpu);
  const std::int64_t layer = layer_begins(config).front();
  EXPECT_DEATH(weights.install_master(Stream{}, master, {.begin = 0, .end = 10}), "inside");
  EXPECT_DEATH(weights.install_master(Stream{}, master, {.begin = 1, .end = layer}), "inside");
}

TEST_P(WeightsIn, BytesAreWhatIsAllocated) {
  for (const bool tied : {false, true})
    for (const WeightsUse use :
         {WeightsUse::kInference, WeightsUse::kTraining, WeightsUse::kTrainingInPlace}) {
      ModelConfig config = testing::tiny_config(Family::kQwen3, GetParam());
      config.tie_word_embeddings = tied;
      const std::size_t before = device::host_blocks().bytes_now;
      const Weights weights = *Weights::allocate(config, use, device::DeviceKind::kCpu);
      EXPECT_EQ(device::host_blocks().bytes_now - before,
                Weights::bytes(config, use, device::DeviceKind::kCpu));
    }
}

// For inference the head's panels are kept alone: everything else that is kept are vectors.
TEST_P(WeightsIn, ATiedEmbeddingExistsOnce) {
  for (const Family family : testing::kFamilies) {
    const ModelConfig config = testing::tiny_config(family, GetParam());
    const Arena arena = testing::published(config, testing::random_weights(config, 8));
    std::size_t vectors = 0;
    for (const device::ParameterSpec& spec : arena.manifest().parameters)
      if (spec.shape.size() == 1) vectors += device::align_up(spec.bytes);
    const auto device = device::DeviceKind::kCpu;
    EXPECT_EQ(Weights::bytes(config, WeightsUse::kInference, device),
              packed_bytes(config) + vectors);
    Weights inference = *Weights::allocate(config, WeightsUse::kInference, device);
    Weights training = *Weights::allocate(config, WeightsUse::kTraining, device);
    inference.install(Stream{}, arena.bytes());
    training.install(Stream{}, arena.bytes());
    EXPECT_TRUE(inference.embedding().plain.empty());
    Scored expected = score(config, training);
    expected.gradients.clear();
    EXPECT_TRUE(score(config, inference) == expected);
  }
}

// Beside the master weights a learner on a CPU has the packed ones and no third copy; in bf16 it
// has the rounded ones as well.
TEST_P(WeightsIn, InPlaceReadsTheMasterWeightsOrTheirRoundedCopy) {
  const bool reads_master = GetParam() == device::DType::kF32;
  for (const Family family : testing::kFamilies)
    for (const bool tied : {false, true}) {
      ModelConfig config = testing::tiny_config(family, GetParam());
      config.tie_word_embeddings = tied;
      const auto device = device::DeviceKind::kCpu;
      EXPECT_EQ(Weights::bytes(config, WeightsUse::kTrainingInPlace, device),
                packed_bytes(config) + (reads_master ? 0 : published_manifest(config).bytes_total));
      const Arena master = testing::random_weights(config, 8);
      const Arena changed = testing::random_weights(config, 9);
      Weights copied = *Weights::allocate(config, WeightsUse::kTraining, device);
      Weights in_place = *Weights::allocate(config, WeightsUse::kTrainingInPlace, device);
      const FloatRange all{.begin = 0, .end = master.flat().elements()};
      copied.install(Stream{}, testing::published(config, master).bytes());
      in_place.install_master(Stream{}, master, all);
      EXPECT_EQ(in_place.embedding().plain.data == master.view(kEmbeddingName).data, reads_master);
      EXPECT_TRUE(score(config, in_place) == score(config, copied));
      std::ranges::copy(changed.bytes(), master.bytes().begin());  // as AdamW does
      in_place.install_master(Stream{}, master, all);
      copied.install(Stream{}, testing::published(config, changed).bytes());
      EXPECT_TRUE(score(config, in_place) == score(config, copied));
    }
}

TEST_P(WeightsIn, ArePublishedRounded) {
  const ModelConfig config = testing::tiny_config(Family::kQwen2, GetParam());
  Arena master = testing::random_weights(config, 8);
  const Arena expected = testing::published(config, master);
  const void* const before = master.flat().data;
  const Result<Arena> published = as_published(config, std::move(master));
  ASSERT_TRUE(published);
  EXPECT_TRUE(std::ranges::equal(published->bytes(), expected.bytes()));
  EXPECT_EQ(published->flat().data == before, GetParam() == device::DType::kF32) << "no copy";
}

}  // namespace
}  // namespace tandem::model
