// The parameters of a model as one flat arena: names, shapes, order, and random values.
//
// Order: embed_tokens, then per layer input_layernorm, q|k|v, q_norm, k_norm, o,
// post_attention_layernorm, gate|up, down; then norm and, unless tied, lm_head. q, k, v and gate,
// up are neighbours without a gap (parse_model_config refuses sizes that would need one), so a
// fused [Q, H] or [2 F, H] operand is a view.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "actors/model/model_config.h"
#include "runtime/device/arena.h"
#include "runtime/device/manifest.h"
#include "runtime/device/parallel.h"

namespace tandem::actors {

inline constexpr const char* kEmbeddingName = "model.embed_tokens.weight";
inline constexpr const char* kFinalNormName = "model.norm.weight";
inline constexpr const char* kHeadName = "lm_head.weight";

// The names that Hugging Face checkpoints give to layer `layer`'s parameters.
struct LayerNames {
  explicit LayerNames(std::int64_t layer);
  std::string input_norm, q, k, v, q_norm, k_norm, o, post_attention_norm, gate, up, down;
};

// Of the master weights and of gradients: f32.
runtime::Manifest make_manifest(const ModelConfig& config);
// Of what is published and computed with: config.dtype. For f32 it is the same.
runtime::Manifest published_manifest(const ModelConfig& config);

// Where the layers of the master weights begin, in floats, in ascending order; the last one is
// where the final norm begins, behind the last layer. The embedding lies before the first layer.
std::vector<std::int64_t> layer_begins(const ModelConfig& config);

// Random weights: norms are 1, every other value is normal with standard deviation
// initializer_range. Each parameter has a stream of its own, keyed by the seed and its name, so its
// values do not depend on the order or the number of the others.
struct RandomInit {
  std::uint64_t seed;
  double initializer_range;
  runtime::ThreadPool* threads = nullptr;  // that draw them; any number draws the same
};
void initialize(const RandomInit& init, const runtime::Arena& arena);

}  // namespace tandem::actors
