#include "actors/model/parameters.h"

#include <cmath>
#include <numbers>
#include <string>

#include "runtime/base/check.h"
#include "runtime/base/rng.h"

namespace tandem::model {
namespace {

// One normal value per counter: Box-Muller in double, of which only the cosine's value is used, so
// that a value depends on its own counter alone.
float normal_at(std::uint64_t key, std::uint64_t counter, double deviation) {
  const auto bits = philox4x32(key, counter);
  // `open` lies in (0, 1), both ends excluded: the logarithm of 0 is infinite.
  const double open = (static_cast<double>(bits[0]) + 0.5) * 0x1p-32;
  const double angle = 2.0 * std::numbers::pi * (static_cast<double>(bits[1]) * 0x1p-32);

  return static_cast<float>(deviation * std::sqrt(-2.0 * std::log(open)) * std::cos(angle));
}

bool is_vector(const device::ParameterSpec& spec) { return spec.shape.size() == 1; }
bool is_bias(const device::ParameterSpec& spec) { return spec.name.ends_with(".bias"); }

// The order of the calls of `add` is the layout that the header promises.
device::Manifest manifest_in(device::DType dtype, const ModelConfig& config) {
  device::Manifest manifest;
  const auto add = [&](const std::string& name, std::vector<std::int64_t> shape) {
    manifest.add(name, dtype, std::move(shape));
  };
  const std::int64_t H = config.hidden_size, F = config.intermediate_size, D = config.head_dim;
  add(kEmbeddingName, {config.vocab_size, H});
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const LayerNames names(layer);
    add(names.input_norm, {H});
    add(names.q, {config.q_width(), H});
    add(names.k, {config.kv_width(), H});
    add(names.v, {config.kv_width(), H});
    if (config.qkv_bias()) {
      add(names.q_bias, {config.q_width()});
      add(names.k_bias, {config.kv_width()});
      add(names.v_bias, {config.kv_width()});
    }
    if (config.qk_norm()) {
      add(names.q_norm, {D});
      add(names.k_norm, {D});
    }
    add(names.o, {H, config.q_width()});
    add(names.post_attention_norm, {H});
    add(names.gate, {F, H});
    add(names.up, {F, H});
    add(names.down, {H, F});
  }
  add(kFinalNormName, {H});
  if (!config.tie_word_embeddings) add(kHeadName, {config.vocab_size, H});
  return manifest;
}

}  // namespace

LayerNames::LayerNames(std::int64_t layer) {
  const std::string at = "model.layers." + std::to_string(layer) + ".";
  input_norm = at + "input_layernorm.weight";
  q = at + "self_attn.q_proj.weight";
  k = at + "self_attn.k_proj.weight";
  v = at + "self_attn.v_proj.weight";
  q_bias = at + "self_attn.q_proj.bias";
  k_bias = at + "self_attn.k_proj.bias";
  v_bias = at + "self_attn.v_proj.bias";
  q_norm = at + "self_attn.q_norm.weight";
  k_norm = at + "self_attn.k_norm.weight";
  o = at + "self_attn.o_proj.weight";
  post_attention_norm = at + "post_attention_layernorm.weight";
  gate = at + "mlp.gate_proj.weight";
  up = at + "mlp.up_proj.weight";
  down = at + "mlp.down_proj.weight";
}

OptionalVectors optional_vectors(const device::Arena& arena, const LayerNames& names) {
  OptionalVectors out;
  // The arena itself says which family it belongs to.
  if (arena.manifest().find(names.q_bias) != nullptr) {
    const device::TensorView bias = arena.fused(names.q_bias, names.v_bias);
    out.qkv_bias = device::reshape(bias, {bias.dim(0), 1});
  }
  if (arena.manifest().find(names.q_norm) != nullptr) {
    out.q_norm = arena.view(names.q_norm);
    out.k_norm = arena.view(names.k_norm);
  }
  return out;
}

device::Manifest make_manifest(const ModelConfig& config) {
  return manifest_in(device::DType::kF32, config);
}

device::Manifest published_manifest(const ModelConfig& config) {
  return manifest_in(config.dtype, config);
}

std::vector<std::int64_t> layer_begins(const ModelConfig& config) {
  const device::Manifest manifest = make_manifest(config);
  const auto begin_of = [&](std::string_view name) {
    return static_cast<std::int64_t>(manifest.find(name)->offset_bytes / sizeof(float));
  };
  std::vector<std::int64_t> begins;
  for (std::int64_t layer = 0; layer < config.layers; ++layer)
    begins.push_back(begin_of(LayerNames(layer).input_norm));
  begins.push_back(begin_of(kFinalNormName));
  return begins;
}

void initialize(const RandomInit& init, const device::Arena& arena) {
  // Values per piece of work of a thread; the values do not depend on it.
  constexpr std::int64_t kGrain = std::int64_t{1} << 16;
  for (const device::ParameterSpec& spec : arena.manifest().parameters) {
    const device::TensorView view = arena.view(spec.name);
    float* values = view.f32();
    // The key is the name, so that two models with a layer in common draw the same values for it.
    const std::uint64_t key = derive_seed(init.seed, spec.name);
    parallel_for(init.threads, view.elements(), kGrain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        values[i] = is_vector(spec)
                        ? (is_bias(spec) ? 0.0f : 1.0f)
                        : normal_at(key, static_cast<std::uint64_t>(i), init.initializer_range);
    });
  }
}

}  // namespace tandem::model
