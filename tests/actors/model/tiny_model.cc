#include "tests/actors/model/tiny_model.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "actors/model/parameters.h"
#include "runtime/base/json.h"
#include "runtime/base/rng.h"

namespace tandem::model::testing {

ModelConfig tiny_config(Family family, device::DType dtype) {
  ModelConfig config;
  config.family = family;
  if (family == Family::kLlama)
    config.rope_scaling = kernels::RopeScaling{
        .factor = 8, .low_freq_factor = 1, .high_freq_factor = 4, .original_positions = 64};
  config.vocab_size = 37;
  config.hidden_size = 24;
  config.intermediate_size = 40;
  config.layers = 2;
  config.heads = 4;
  config.kv_heads = 2;
  config.head_dim = 16;
  config.max_position_embeddings = 128;
  config.rms_norm_eps = 1e-6;
  config.rope_theta = 1e4;
  config.initializer_range = 0.02;
  config.tie_word_embeddings = true;
  config.eos_token_ids = {1};
  config.pad_token_id = 0;
  CHECK(compute_in(dtype, config).has_value());
  return config;
}

Model arithmetic_model(std::uint64_t seed) {
  const char* const bundle = std::getenv("TANDEM_SOURCE_DIR");  // where scripts/bundle's tests run
  const std::filesystem::path sources = bundle != nullptr ? bundle : TANDEM_SOURCE_DIR;
  const auto folder = sources / "configs/models/arithmetic";
  Result<Model> model = load_model(folder, {.init = InitMode::kRandom, .seed = seed});
  CHECK(model.has_value());
  return *std::move(model);
}

device::Arena random_weights(const ModelConfig& config, std::uint64_t seed) {
  Result<device::Arena> arena = device::Arena::allocate(make_manifest(config), "test weights");
  CHECK(arena.has_value());
  Rng rng(seed);
  for (const device::ParameterSpec& spec : arena->manifest().parameters) {
    const device::TensorView view = arena->view(spec.name);
    const double mean = spec.shape.size() == 1 && !spec.name.ends_with(".bias") ? 1.0 : 0.0;
    for (std::int64_t i = 0; i < view.elements(); ++i)
      view.f32()[i] = static_cast<float>(mean + 0.3 * rng.normal());
  }
  return *std::move(arena);
}

std::filesystem::path scratch_folder(const std::string& name) {
  static const struct Root {
    Root() { std::filesystem::create_directories(path); }
    ~Root() { std::filesystem::remove_all(path); }
    const std::filesystem::path path = std::filesystem::path(::testing::TempDir()) /
                                       ("tandem-model-test-" + std::to_string(::getpid()));
  } root;
  const std::filesystem::path folder = root.path / name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

std::filesystem::path golden_folder() {
  return std::filesystem::path(TANDEM_SOURCE_DIR) / "tests/golden";
}

void write_text(const std::filesystem::path& file, std::string_view text) {
  std::ofstream(file, std::ios::binary) << text;
}

std::string character_tokenizer(std::string_view characters) {
  nlohmann::json vocab;
  std::int32_t id = 0;
  for (const char c : characters) vocab[c == ' ' ? "\u0120" : std::string(1, c)] = id++;
  const auto added = [](std::int32_t at, const char* content) {
    return nlohmann::json{{"id", at}, {"content", content}, {"special", true}};
  };
  return nlohmann::json{
      {"added_tokens", {added(id, "<eos>"), added(id + 1, "<pad>")}},
      {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}},
      {"decoder", {{"type", "ByteLevel"}}},
      {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", nlohmann::json::array()}}}}
      .dump();
}

void write_model_folder(const std::filesystem::path& folder, const ModelConfig& config) {
  std::filesystem::create_directories(folder);
  write_text(folder / "config.json", config_json(config));
  write_text(folder / "tokenizer.json", character_tokenizer("0123456789+= abc"));
}

device::Arena published(const ModelConfig& config, const device::Arena& weights) {
  Result<device::Arena> arena = device::Arena::allocate(published_manifest(config), "test weights");
  CHECK(arena.has_value());
  for (const device::ParameterSpec& spec : arena->manifest().parameters) {
    const device::TensorView from = weights.view(spec.name);
    device::from_f32({from.f32(), static_cast<std::size_t>(from.elements())}, spec.dtype,
                     arena->bytes().subspan(spec.offset_bytes, spec.bytes));
  }
  return *std::move(arena);
}

}  // namespace tandem::model::testing
