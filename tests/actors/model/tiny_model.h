// Builders for tests that need a model: small configurations, random weights, scratch folders.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/model/checkpoint.h"
#include "actors/model/model_config.h"
#include "runtime/base/result.h"
#include "runtime/device/arena.h"

namespace tandem::model::testing {

// Two layers, grouped heads, head_dim unlike hidden / heads, tied. Llama with scaled positions.
ModelConfig tiny_config(Family family = Family::kQwen3, device::DType dtype = device::DType::kF32);
inline constexpr device::DType kDTypes[] = {device::DType::kF32, device::DType::kBF16};
inline constexpr Family kFamilies[] = {Family::kQwen3, Family::kQwen2, Family::kLlama};

// The quickstart's model with random weights of the seed.
Model arithmetic_model(std::uint64_t seed);

// Weights wide enough that logits are far from uniform: norms about 1, the rest with deviation 0.3.
device::Arena random_weights(const ModelConfig& config, std::uint64_t seed);

// An empty folder of this test process, removed when it ends.
std::filesystem::path scratch_folder(const std::string& name);

std::filesystem::path golden_folder();  // tests/golden

void write_text(const std::filesystem::path& file, std::string_view text);

// A tokenizer.json without merges: one token for each of `characters`, then eos and pad.
std::string character_tokenizer(std::string_view characters);

// Writes config.json and tokenizer.json: a directory that loads with random weights.
void write_model_folder(const std::filesystem::path& folder, const ModelConfig& config);

// The arena that a trainer of a model with these weights publishes: rounded to config.dtype.
device::Arena published(const ModelConfig& config, const device::Arena& weights);

// The value of a Result. An error is reported, with its text, as a failure of the test, and then
// aborts the process.
template <class T>
T must(Result<T> result) {
  if (!result) ADD_FAILURE() << render(result.error());
  return *std::move(result);
}

}  // namespace tandem::model::testing
