// The decoder against PyTorch and transformers (scripts/make_goldens.py says how the numbers came).
//
// Tests actors/model/decoder.h.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "actors/model/checkpoint.h"
#include "actors/model/decoder.h"
#include "actors/model/parameters.h"
#include "actors/model/safetensors.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "tests/actors/model/tiny_model.h"

namespace tandem::model {
namespace {

using device::Stream;
using testing::must;

// Largest difference allowed, as a fraction of the golden tensor's largest magnitude. Both sides
// compute in f32 (epsilon 6e-8) and differ in the order of sums, in exp, and in where cos and sin
// are rounded; errors grow with the depth of the chain, which is twice as long for a gradient. Each
// bound is about five times the largest difference seen; for the entropy it is twice the error of
// the golden numbers themselves, which lie up to 2.4e-6 from those of float64.
constexpr double kLogitsTolerance = 6e-6;
constexpr double kLogprobTolerance = 2e-6;
constexpr double kEntropyTolerance = 5e-6;
constexpr double kGradientTolerance = 2e-5;

constexpr const char* kNames[] = {"grouped_untied_f32",      "tied_bf16",
                                  "ungrouped_sharded_f16",   "llama_scaled_tied_bf16",
                                  "llama_scaled_untied_f32", "llama_plain_sharded_f16",
                                  "qwen2_tied_bf16",         "qwen2_untied_f32"};

class Golden {
 public:
  explicit Golden(const std::string& name)
      : file_(must(SafetensorsFile::open(testing::golden_folder() / name / "golden.safetensors"))),
        model_(load(name)) {
    const auto text = read_file(testing::golden_folder() / name / "golden.json");
    const nlohmann::json golden = parse_json(*text);
    temperature = golden["temperature"];
    sequences = golden["sequences"].get<std::vector<std::vector<std::int32_t>>>();
  }

  const Model& model() const { return model_; }
  std::vector<float> tensor(const std::string& name) const {
    const std::vector<std::int64_t>& shape = file_.entries().at(name).shape;
    std::vector<float> values(static_cast<std::size_t>(
        std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>())));
    EXPECT_TRUE(file_.read(name, values).has_value()) << name;
    return values;
  }

  float temperature = 1;
  std::vector<std::vector<std::int32_t>> sequences;

 private:
  static Model load(const std::string& name) {
    const auto folder = testing::scratch_folder(name);
    std::filesystem::copy(testing::golden_folder() / name, folder,
                          std::filesystem::copy_options::recursive);
    std::filesystem::remove(folder / "golden.safetensors");
    testing::write_text(folder / "tokenizer.json", testing::character_tokenizer("0123456789"));
    return must(load_model(folder, {.init = InitMode::kPretrained}));
  }

  SafetensorsFile file_;
  Model model_;
};

void expect_close(std::span<const float> ours, const std::vector<float>& golden, double tolerance,
                  const std::string& what) {
  ASSERT_EQ(ours.size(), golden.size()) << what;
  double scale = 0, worst = 0;
  for (std::size_t i = 0; i < golden.size(); ++i) {
    scale = std::max(scale, std::abs(double{golden[i]}));
    worst = std::max(worst, std::abs(double{ours[i]} - double{golden[i]}));
    ASSERT_TRUE(std::isfinite(ours[i])) << what;
  }
  ASSERT_GT(scale, 0) << what << ": the golden says nothing";
  EXPECT_LE(worst / scale, tolerance) << what;
}

Weights installed(const Model& model, WeightsUse use) {
  Result<Weights> weights = Weights::allocate(model.config, use, device::DeviceKind::kCpu);
  weights->install(Stream{}, model.weights.bytes());
  return *std::move(weights);
}

class DecoderGolden : public ::testing::TestWithParam<const char*> {};

TEST_P(DecoderGolden, Logits) {
  const Golden golden(GetParam());
  const ModelConfig& config = golden.model().config;
  const Weights weights = installed(golden.model(), WeightsUse::kInference);
  PagedDecoder decoder = *PagedDecoder::make(
      config, {.rows_max = 64, .slices_max = 4, .logit_rows_max = 64, .positions_max = 64},
      device::DeviceKind::kCpu);
  KvCache cache = *KvCache::allocate(config, 16, 16, device::DeviceKind::kCpu);
  std::vector<std::vector<std::int32_t>> pages;
  std::vector<PagedSlice> slices;
  for (std::int32_t i = 0; i < std::ssize(golden.sequences); ++i)
    pages.push_back({4 * i, 4 * i + 1, 4 * i + 2, 4 * i + 3});
  for (std::size_t i = 0; i < pages.size(); ++i)
    slices.push_back({.tokens = golden.sequences[i],
                      .position = 0,
                      .pages = pages[i],
                      .logits_last = static_cast<std::int32_t>(golden.sequences[i].size())});
  const device::TensorView logits = decoder.forward(Stream{}, weights, cache, slices);
  std::int64_t row = 0;
  for (std::size_t i = 0; i < pages.size(); ++i) {
    const auto length = static_cast<std::int64_t>(golden.sequences[i].size());
    const device::TensorView own = device::rows(logits, row, length);
    expect_close({own.f32(), static_cast<std::size_t>(own.elements())},
                 golden.tensor("logits." + std::to_string(i)), kLogitsTolerance,
                 "sequence " + std::to_string(i));
    row += length;
  }
}

TEST_P(DecoderGolden, LogProbabilitiesAndEveryGradient) {
  const Golden golden(GetParam());
  const ModelConfig& config = golden.model().config;
  const Weights weights = installed(golden.model(), WeightsUse::kTraining);
  TrainDecoder decoder = *TrainDecoder::make(
      config, {.rows_max = 64, .items_max = 64, .positions_max = 64}, device::DeviceKind::kCpu);
  std::vector<std::int32_t> tokens;
  std::vector<kernels::Segment> segments;
  std::vector<LogprobItem> items;
  for (const auto& sequence : golden.sequences) {
    const auto begin = static_cast<std::int32_t>(tokens.size());
    const auto length = static_cast<std::int32_t>(sequence.size());
    segments.push_back({.begin = begin, .len = length});
    for (std::int32_t i = 0; i + 1 < length; ++i) items.push_back({begin + i, sequence[i + 1]});
    tokens.insert(tokens.end(), sequence.begin(), sequence.end());
  }
  const PackedBatch batch{tokens, segments, items, golden.temperature};
  std::vector<float> logprob(items.size()), entropy(items.size());
  decoder.forward(Stream{}, weights, batch, logprob, entropy);
  expect_close(logprob, golden.tensor("logprob"), kLogprobTolerance, "logprob");
  expect_close(entropy, golden.tensor("entropy"), kEntropyTolerance, "entropy");

  const device::Arena gradients = *device::Arena::allocate(make_manifest(config), "test gradients");
  decoder.backward(Stream{}, weights, batch, golden.tensor("dlogprob"), golden.tensor("dentropy"),
                   gradients);
  for (const device::ParameterSpec& spec : gradients.manifest().parameters) {
    const device::TensorView view = gradients.view(spec.name);
    expect_close({view.f32(), static_cast<std::size_t>(view.elements())},
                 golden.tensor("grad." + spec.name), kGradientTolerance, spec.name);
  }
}

INSTANTIATE_TEST_SUITE_P(Configurations, DecoderGolden, ::testing::ValuesIn(kNames),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace tandem::model
