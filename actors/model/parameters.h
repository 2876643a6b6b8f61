// The parameters of a model as one flat arena: their names, shapes, order, and random values.
//
// Order: embed_tokens, then per layer input_layernorm, q|k|v, their biases, q_norm, k_norm, o,
// post_attention_layernorm, gate|up, down; then norm and, unless tied, lm_head. Biases and q/k
// norms exist only in the families that have them. q, k, v, their biases, and gate, up are
// neighbours without a gap (parse_model_config and compute_in refuse sizes that would need one), so
// a fused [Q, H], [Q] or [2 F, H] operand is a view.
//
// Forward reads weights in this order, and backward finishes gradients in the opposite order (DE-4,
// DE-5). Bytes that travel between ranks are therefore always a range of the arena.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "actors/model/model_config.h"
#include "runtime/device/arena.h"
#include "runtime/device/manifest.h"
#include "runtime/device/parallel.h"
#include "runtime/device/tensor_view.h"

namespace tandem::model {

inline constexpr const char* kEmbeddingName = "model.embed_tokens.weight";
inline constexpr const char* kFinalNormName = "model.norm.weight";
inline constexpr const char* kHeadName = "lm_head.weight";

// The names that Hugging Face checkpoints give to layer `layer`'s parameters.
struct LayerNames {
  explicit LayerNames(std::int64_t layer);
  std::string input_norm, q, k, v, q_norm, k_norm, o, post_attention_norm, gate, up, down;
  std::string q_bias, k_bias, v_bias;
};

// The parameters that not every family has, as views of an arena with one of the manifests below.
struct OptionalVectors {
  device::TensorView qkv_bias;        // [Q, 1], or empty
  device::TensorView q_norm, k_norm;  // [D], or empty
};
OptionalVectors optional_vectors(const device::Arena& arena, const LayerNames& names);

// The layout of master weights and of gradients: f32.
device::Manifest make_manifest(const ModelConfig& config);
// The layout of published weights, in config.dtype. For f32 it equals make_manifest().
device::Manifest published_manifest(const ModelConfig& config);

// [L + 1] Where the layers of the master weights begin, in floats, ascending. The last entry is
// where the final norm begins, behind the last layer. The embedding lies before the first layer.
std::vector<std::int64_t> layer_begins(const ModelConfig& config);

// Random weights: norms are 1, biases are 0, every other value is normal with standard deviation
// initializer_range. Each parameter has a stream of its own, keyed by the seed and its name, so its
// values do not depend on the order or the number of the others.
struct RandomInit {
  std::uint64_t seed;
  double initializer_range;
  device::ThreadPool* threads = nullptr;  // may be null; any number of threads draws the same
};
void initialize(const RandomInit& init, const device::Arena& arena);

}  // namespace tandem::model
