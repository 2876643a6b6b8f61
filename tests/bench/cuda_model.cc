#include "tests/bench/cuda_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <thread>

#include "actors/model/parameters.h"
#include "runtime/base/rng.h"
#include "runtime/device/parallel.h"

namespace tandem::bench {

model::ModelConfig model_config(const DecoderShape& shape) {
  model::ModelConfig config;
  config.vocab_size = shape.vocab;
  config.hidden_size = shape.hidden;
  config.intermediate_size = shape.intermediate;
  config.layers = shape.layers;
  config.heads = shape.heads;
  config.kv_heads = shape.kv_heads;
  config.head_dim = shape.head_dim;
  config.max_position_embeddings = 40960;
  config.rms_norm_eps = 1e-6;
  config.rope_theta = 1e6;
  config.initializer_range = 0.02;
  config.tie_word_embeddings = true;
  config.dtype = sizes().model_dtype;
  return config;
}

void fill_weights(const model::ModelConfig& config, const device::Manifest& manifest,
                  std::span<std::byte> arena) {
  constexpr std::int64_t kPiece = 4096;
  device::ThreadPool pool(std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, 16));
  const float width = static_cast<float>(config.initializer_range * std::sqrt(12.0));
  for (const device::ParameterSpec& spec : manifest.parameters) {
    const std::size_t size = device::size_bytes(spec.dtype);
    const auto count = static_cast<std::int64_t>(spec.bytes / size);
    const bool norm = spec.shape.size() == 1;
    const std::uint64_t seed = derive_seed(1, spec.name);
    device::parallel_for(&pool, count, kPiece, [&](std::int64_t begin, std::int64_t end) {
      std::array<float, kPiece> drawn;
      const auto piece = std::span(drawn).first(static_cast<std::size_t>(end - begin));
      Rng rng(derive_seed(seed, {static_cast<std::uint64_t>(begin)}));
      for (float& value : piece)
        value = norm ? 1.0f : (static_cast<float>(rng.unit()) - 0.5f) * width;
      device::from_f32(piece, spec.dtype,
                       arena.subspan(spec.offset_bytes + static_cast<std::size_t>(begin) * size,
                                     piece.size() * size));
    });
  }
}

double layer_elements(const DecoderShape& s) {
  const std::int64_t each = s.hidden * (s.qkv_width() + s.q_width() + 3 * s.intermediate);
  return static_cast<double>(each * s.layers);
}

double weight_bytes_read(const DecoderShape& s) {
  const double head = static_cast<double>(s.vocab * s.hidden);
  return (layer_elements(s) + head) * static_cast<double>(device::size_bytes(sizes().model_dtype));
}

}  // namespace tandem::bench
