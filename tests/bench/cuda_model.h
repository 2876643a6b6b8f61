// Models of a benchmark's shapes: their configuration and random weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "actors/model/model_config.h"
#include "runtime/device/manifest.h"
#include "tests/bench/cuda_bench.h"

namespace tandem::bench {

// Without eos tokens: a completion has the length that a benchmark gives it.
actors::ModelConfig model_config(const DecoderShape& shape);

// Fills an arena of the model's parameters, in whatever dtype, on all of the machine's cores.
void fill_weights(const actors::ModelConfig& config, const device::Manifest& manifest,
                  std::span<std::byte> arena);

// What a decoded token reads of the weights: every matrix once, the head as well, of the embedding
// nothing to speak of.
double weight_bytes_read(const DecoderShape& shape);
// Elements of the matrices of all layers.
double layer_elements(const DecoderShape& shape);

}  // namespace tandem::bench
