// Models of a benchmark's shapes: their configuration, random weights, and text for prompts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "actors/model/model_config.h"
#include "actors/model/tokenizer.h"
#include "runtime/device/manifest.h"
#include "tests/bench/cuda_bench.h"

namespace tandem::bench {

// Without eos tokens: a completion has the length that a benchmark gives it.
actors::ModelConfig model_config(const DecoderShape& shape);

// The quickstart's, which has a token for each digit. Models have room for more tokens than it has.
actors::Tokenizer tokenizer();
std::string digits(std::int64_t tokens, std::uint64_t seed);

// Fills an arena of the model's parameters, in whatever dtype, on all of the machine's cores.
void fill_weights(const actors::ModelConfig& config, const runtime::Manifest& manifest,
                  std::span<std::byte> arena);

// What a decoded token reads of the weights: every matrix once, the head as well, of the embedding
// nothing to speak of.
double weight_bytes_read(const DecoderShape& shape);
// Elements of the matrices of all layers.
double layer_elements(const DecoderShape& shape);

}  // namespace tandem::bench
