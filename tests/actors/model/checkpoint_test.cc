// Model directories are saved and loaded with the same bits; random weights depend on the seed and
// the parameter's name alone; each missing or damaged file is named.
#include "actors/model/checkpoint.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "actors/model/parameters.h"
#include "runtime/base/file.h"
#include "runtime/device/memory.h"
#include "runtime/device/parallel.h"
#include "tests/actors/model/tiny_model.h"

namespace tandem::model {
namespace {

bool same_bytes(const device::Arena& a, const device::Arena& b) {
  return a.manifest() == b.manifest() &&
         std::memcmp(a.bytes().data(), b.bytes().data(), a.bytes().size()) == 0;
}

Model must_load(const std::filesystem::path& folder, const LoadOptions& options) {
  Result<Model> model = load_model(folder, options);
  if (!model) ADD_FAILURE() << render(model.error());
  return *std::move(model);
}

TEST(Manifest, FusedOperandsAreViews) {
  for (const bool tied : {false, true}) {
    ModelConfig config = testing::tiny_config();
    config.tie_word_embeddings = tied;
    const device::Arena arena = testing::random_weights(config, 1);
    EXPECT_EQ(arena.manifest().find(kHeadName) == nullptr, tied);
    for (std::int64_t layer = 0; layer < config.layers; ++layer) {
      const LayerNames names(layer);
      const device::TensorView qkv = arena.fused(names.q, names.v);
      EXPECT_EQ(qkv.dim(0), config.qkv_width());
      EXPECT_EQ(qkv.f32() + config.q_width() * config.hidden_size, arena.view(names.k).f32());
      EXPECT_EQ(arena.fused(names.gate, names.up).dim(0), 2 * config.intermediate_size);
    }
  }
}

TEST(Checkpoint, SavesAndLoadsBitForBit) {
  for (const auto& [family, tied] : {std::pair{Family::kQwen3, false},
                                     {Family::kQwen3, true},
                                     {Family::kQwen2, true},
                                     {Family::kLlama, false}}) {
    SCOPED_TRACE(architecture(family));
    ModelConfig config = testing::tiny_config(family);
    config.tie_word_embeddings = tied;
    const auto source = testing::scratch_folder("save-source");
    testing::write_model_folder(source, config);
    testing::write_text(source / "generation_config.json", R"({"eos_token_id": [1, 2]})");
    const char* const beside[] = {"tokenizer_config.json", "special_tokens_map.json",
                                  "chat_template.jinja", "vocab.json", "merges.txt"};
    for (const char* file : beside) testing::write_text(source / file, file);
    const Model model = must_load(source, {.init = InitMode::kRandom, .seed = 3});
    const auto target = testing::scratch_folder("save-target") / "new" / "step-1";
    const Result<void> saved = save_model(
        target, {.config = model.config, .weights = model.weights, .source = model.directory});
    ASSERT_TRUE(saved.has_value()) << render(saved.error());
    const Model back = must_load(target, {.init = InitMode::kPretrained});
    EXPECT_TRUE(same_bytes(model.weights, back.weights));
    EXPECT_EQ(back.config, model.config);
    EXPECT_EQ(*read_file(target / "tokenizer.json"), *read_file(source / "tokenizer.json"));
    for (const char* file : beside) EXPECT_EQ(*read_file(target / file), file);
    EXPECT_EQ(back.config.eos_token_ids, (std::vector<std::int32_t>{1, 2}));
  }
}

TEST(Checkpoint, RandomWeightsDependOnSeedAndNameAlone) {
  ModelConfig small = testing::tiny_config(), large = small;
  large.layers = 5;
  large.tie_word_embeddings = false;
  const auto init = [](const ModelConfig& config, std::uint64_t seed) {
    Result<device::Arena> arena = device::Arena::allocate(make_manifest(config), "test");
    initialize({.seed = seed, .initializer_range = config.initializer_range}, *arena);
    return *std::move(arena);
  };
  const device::Arena a = init(small, 7), again = init(small, 7), b = init(large, 7);
  EXPECT_TRUE(same_bytes(a, again));
  EXPECT_FALSE(same_bytes(a, init(small, 8)));
  double sum = 0, squares = 0, count = 0;
  for (const device::ParameterSpec& spec : a.manifest().parameters) {
    const float* values = a.view(spec.name).f32();
    EXPECT_EQ(std::memcmp(values, b.view(spec.name).f32(), spec.bytes), 0) << spec.name;
    for (std::int64_t i = 0; i < a.view(spec.name).elements(); ++i) {
      if (spec.shape.size() == 1) {
        EXPECT_EQ(values[i], 1.0f);
        continue;
      }
      sum += values[i];
      squares += double{values[i]} * values[i];
      ++count;
    }
  }
  EXPECT_NEAR(sum / count, 0, 4 * small.initializer_range / std::sqrt(count));
  EXPECT_NEAR(std::sqrt(squares / count), small.initializer_range, 0.03 * small.initializer_range);
}

// Transformers begins so too: the biases of random weights are zero.
TEST(Checkpoint, RandomBiasesAreZero) {
  const ModelConfig config = testing::tiny_config(Family::kQwen2);
  Result<device::Arena> arena = device::Arena::allocate(make_manifest(config), "test");
  initialize({.seed = 7, .initializer_range = 0.02}, *arena);
  const LayerNames names(1);
  const device::TensorView bias = optional_vectors(*arena, names).qkv_bias;
  ASSERT_EQ(bias.dim(0), config.qkv_width());
  EXPECT_EQ(bias.f32() + config.q_width(), arena->view(names.k_bias).f32());
  for (std::int64_t i = 0; i < bias.dim(0); ++i) EXPECT_EQ(bias.f32()[i], 0.0f);
  EXPECT_EQ(arena->view(names.input_norm).f32()[0], 1.0f);
  EXPECT_TRUE(optional_vectors(*arena, names).q_norm.empty());
}

TEST(Checkpoint, AnyNumberOfThreadsDrawsTheSame) {
  ModelConfig config = testing::tiny_config();
  config.vocab_size = (3 << 16) / config.hidden_size + 5;  // several pieces of a thread's
  const auto init = [&](device::ThreadPool* threads) {
    Result<device::Arena> arena = device::Arena::allocate(make_manifest(config), "test");
    initialize({.seed = 7, .initializer_range = 0.02, .threads = threads}, *arena);
    return *std::move(arena);
  };
  device::ThreadPool threads(3);
  EXPECT_TRUE(same_bytes(init(&threads), init(nullptr)));
}

// The peak counts: a second model beside a large one does not fit.
TEST(Checkpoint, LoadsIntoOneArena) {
  const ModelConfig config = testing::tiny_config();
  const auto folder = testing::scratch_folder("one-arena");
  testing::write_model_folder(folder, config);
  const device::Arena saved = testing::random_weights(config, 4);
  ASSERT_TRUE(save_model(folder, {.config = config, .weights = saved, .source = folder}));
  const std::size_t arena = saved.bytes().size(), before = device::host_blocks().bytes_now;
  device::reset_host_blocks_peak();
  device::ThreadPool threads(2);
  const Model model = must_load(folder, {.threads = &threads});
  EXPECT_TRUE(same_bytes(model.weights, saved));
  EXPECT_EQ(device::host_blocks().bytes_peak, before + arena);
  const device::Arena there = testing::random_weights(config, 5);
  device::reset_host_blocks_peak();
  const std::size_t now = device::host_blocks().bytes_now;
  const Result<void> loaded =
      load_weights(folder, {.config = config, .weights = there, .threads = &threads});
  ASSERT_TRUE(loaded.has_value()) << render(loaded.error());
  EXPECT_TRUE(same_bytes(there, saved));
  EXPECT_EQ(device::host_blocks().bytes_peak, now);
  ModelConfig other = config;
  other.layers = 1;
  EXPECT_FALSE(load_weights(folder, {.config = other, .weights = there}));
}

TEST(Checkpoint, NamesTheFileThatIsMissingOrWrong) {
  const auto folder = testing::scratch_folder("missing");
  const auto expect_error = [&](const LoadOptions& options, const std::string& file) {
    const Result<Model> model = load_model(folder, options);
    ASSERT_FALSE(model.has_value()) << file;
    EXPECT_NE(model.error().where.find(file), std::string::npos) << render(model.error());
  };
  const LoadOptions random{.init = InitMode::kRandom}, trained{.init = InitMode::kPretrained};
  expect_error(random, "config.json");
  ModelConfig config = testing::tiny_config();
  testing::write_text(folder / "config.json", config_json(config));
  expect_error(random, "tokenizer.json");
  testing::write_model_folder(folder, config);
  EXPECT_TRUE(load_model(folder, random).has_value());
  EXPECT_TRUE(load_model_info(folder).has_value());
  expect_error(trained, "model.safetensors");
  config.vocab_size = 17;  // the tokenizer has 18 ids
  testing::write_model_folder(folder, config);
  expect_error(random, "tokenizer.json");
  testing::write_text(folder / "tokenizer.json", "{\"model\": ");
  expect_error(random, "tokenizer.json");
}

TEST(Checkpoint, ATruncatedOrForeignWeightFileIsRefused) {
  const auto folder = testing::scratch_folder("foreign");
  testing::write_model_folder(folder, testing::tiny_config());
  const Model model = must_load(folder, {.init = InitMode::kRandom, .seed = 1});
  ASSERT_TRUE(
      save_model(folder, {.config = model.config, .weights = model.weights, .source = folder})
          .has_value());
  const std::string whole = *read_file(folder / "model.safetensors");
  testing::write_text(folder / "model.safetensors", whole.substr(0, whole.size() - 1));
  const Result<Model> truncated = load_model(folder, {});
  ASSERT_FALSE(truncated.has_value());
  EXPECT_NE(truncated.error().message.find("truncated"), std::string::npos);
  testing::write_text(folder / "model.safetensors", whole);
  ModelConfig other = model.config;
  other.layers = 3;
  testing::write_text(folder / "config.json", config_json(other));
  const Result<Model> missing = load_model(folder, {});
  ASSERT_FALSE(missing.has_value());
  EXPECT_NE(missing.error().message.find("model.layers.2."), std::string::npos);
  other.layers = 1;
  testing::write_text(folder / "config.json", config_json(other));
  const Result<Model> unexpected = load_model(folder, {});
  ASSERT_FALSE(unexpected.has_value());
  EXPECT_NE(unexpected.error().message.find("model.layers.1."), std::string::npos);
}

TEST(Checkpoint, AnUnwritablePlaceIsAnError) {
  const auto folder = testing::scratch_folder("unwritable");
  testing::write_model_folder(folder, testing::tiny_config());
  const Model model = must_load(folder, {.init = InitMode::kRandom, .seed = 1});
  testing::write_text(folder / "file", "");
  const Result<void> saved =
      save_model(folder / "file" / "model",
                 {.config = model.config, .weights = model.weights, .source = folder});
  ASSERT_FALSE(saved.has_value());
  EXPECT_NE(saved.error().where.find("file/model"), std::string::npos);
}

}  // namespace
}  // namespace tandem::model
