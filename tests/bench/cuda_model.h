// Models of a benchmark's shapes: their configuration and random weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "actors/model/model_config.h"
#include "runtime/device/manifest.h"
#include "tests/bench/cuda_bench.h"

namespace tandem::bench {

// The model has no eos tokens: a completion has the length that a benchmark gives it.
model::ModelConfig model_config(const DecoderShape& shape);

// Fills an arena of the model's parameters, in whatever dtype, on all of the machine's cores.
void fill_weights(const model::ModelConfig& config, const device::Manifest& manifest,
                  std::span<std::byte> arena);

// The bytes of the weights that a decoded token reads: every matrix once, including the head. The
// one row of the embedding is neglected.
double weight_bytes_read(const DecoderShape& shape);
// Elements of the matrices of all layers.
double layer_elements(const DecoderShape& shape);

}  // namespace tandem::bench
