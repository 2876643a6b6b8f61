// The shape of a model, read from config.json and checked.
//
// Only models that the decoder can compute are accepted. An architecture or a feature that the
// decoder lacks is refused by its name before anything is allocated. Keys that change no number
// here (dtype, cache settings, dropout, versions) are ignored.
//
//   family  architecture        q/k norm  q/k/v bias
//   kQwen3  Qwen3ForCausalLM    yes       no
//   kQwen2  Qwen2ForCausalLM    no        yes         (Qwen2 and Qwen2.5)
//   kLlama  LlamaForCausalLM    no        no          (Llama 2 and 3.x, SmolLM2)
//
// Letters used by everything in this folder
//   V vocab_size   H hidden_size   L layers   F intermediate_size   D head_dim
//   A heads        B kv_heads (A is a multiple of B)                Q = (A + 2 B) D of q|k|v
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/ops/rope.h"
#include "runtime/base/result.h"
#include "runtime/device/dtype.h"

namespace tandem::model {

enum class Family : std::uint8_t { kQwen3, kQwen2, kLlama };

const char* architecture(Family family);  // "Qwen3ForCausalLM"

struct ModelConfig {
  Family family = Family::kQwen3;
  std::int64_t vocab_size = 0;
  std::int64_t hidden_size = 0;
  std::int64_t intermediate_size = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;                 // multiple of 16; need not be hidden_size / heads
  std::int64_t max_position_embeddings = 0;  // positions a sequence may have
  double rms_norm_eps = 0;
  double rope_theta = 0;
  std::optional<kernels::RopeScaling> rope_scaling;  // set for rope type llama3
  double initializer_range = 0;                      // standard deviation of random weights
  bool tie_word_embeddings = false;
  std::vector<std::int32_t> eos_token_ids;  // each of these ends a completion; may be empty
  std::optional<std::int32_t> bos_token_id;
  std::optional<std::int32_t> pad_token_id;
  // The dtype of weights and activations while the model computes: f32 or bf16. The job chooses the
  // dtype, whatever the checkpoint's files hold. Sums, statistics, logits, gradients of parameters
  // and master weights are f32 in either case.
  device::DType dtype = device::DType::kF32;

  bool qk_norm() const { return family == Family::kQwen3; }   // every head of q and k is normalised
  bool qkv_bias() const { return family == Family::kQwen2; }  // q|k|v has a bias [Q]
  std::int64_t q_width() const { return heads * head_dim; }
  std::int64_t kv_width() const { return kv_heads * head_dim; }
  std::int64_t qkv_width() const { return q_width() + 2 * kv_width(); }
  bool operator==(const ModelConfig&) const = default;
};

// `text` is the content of config.json and `file` its name. Errors name file and key.
Result<ModelConfig> parse_model_config(std::string_view text, const std::string& file);

// Reads DIR/config.json. Where DIR/generation_config.json exists, its eos_token_id, bos_token_id
// and pad_token_id take precedence, as they do in transformers.
Result<ModelConfig> read_model_config(const std::filesystem::path& directory);

// Sets `config.dtype`. The error (kInvalid) names a size of the model that is no multiple of the
// arena's alignment in this dtype: parameters that are multiplied as one operand, such as q|k|v,
// would then have gaps between them.
Result<void> compute_in(device::DType dtype, ModelConfig& config);

// A config.json that transformers and parse_model_config read back as `config`, apart from `dtype`.
std::string config_json(const ModelConfig& config);

}  // namespace tandem::model
