// A model on disk and in memory: Hugging Face directories in and out.
//
// A directory holds config.json, tokenizer.json, model.safetensors (or shards with an index), and
// optionally generation_config.json, tokenizer_config.json and others that are only copied along.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "actors/model/model_config.h"
#include "actors/model/tokenizer.h"
#include "runtime/base/result.h"
#include "runtime/device/arena.h"
#include "runtime/device/manifest.h"
#include "runtime/device/parallel.h"

namespace tandem::actors {

enum class InitMode : std::uint8_t {
  kPretrained,  // weights from safetensors
  kRandom,  // weights from seed and initializer_range; needs config.json and tokenizer.json only
};

struct LoadOptions {
  InitMode init = InitMode::kPretrained;
  std::uint64_t seed = 0;                       // of random weights
  runtime::DType dtype = runtime::DType::kF32;  // that the model is to compute in
  runtime::ThreadPool* threads = nullptr;       // that draw random weights, or read the files
};

struct Model {
  std::filesystem::path directory;  // where it came from: save_model copies the rest from there
  ModelConfig config;
  Tokenizer tokenizer;
  runtime::Arena weights;  // f32, with its manifest
};

// Reads and checks everything: a truncated or mismatching file is an error that names file and
// tensor. Nothing is allocated for the weights before config and tokenizer have passed.
Result<Model> load_model(const std::filesystem::path& directory, const LoadOptions& options);

// Fills `weights`, laid out by make_manifest(config), from DIR's weight files, with the same
// checks. After an error its content is undefined.
struct LoadWeights {
  const ModelConfig& config;
  const runtime::Arena& weights;
  runtime::ThreadPool* threads = nullptr;
};
Result<void> load_weights(const std::filesystem::path& directory, const LoadWeights& load);

// Whether DIR's weight files, by their headers, hold the parameters of `config`. Nothing is
// allocated for weights; load_model asks first, and who is told of a job may.
Result<void> check_weights(const std::filesystem::path& directory, const ModelConfig& config);

// Without the weights: what a rollout actor needs that receives them from a publisher.
struct ModelInfo {
  std::filesystem::path directory;
  ModelConfig config;
  Tokenizer tokenizer;
  runtime::Manifest manifest;  // of what is published
};
Result<ModelInfo> load_model_info(const std::filesystem::path& directory,
                                  runtime::DType dtype = runtime::DType::kF32);

// Writes a complete directory at `directory` (created if missing): config.json, model.safetensors
// (f32, HF names), and what `source` has of tokenizer.json, generation_config.json,
// tokenizer_config.json, special_tokens_map.json, chat_template.jinja and the older files of
// tokenizers and templates (kCopiedFiles). Each file is written beside
// its name, synced and renamed, so a reader never sees half a file. `weights` is laid out by the
// manifest of `config`. An existing directory is overwritten file by file: for an atomic checkpoint
// write a new directory and rename it.
struct SaveModel {
  const ModelConfig& config;
  const runtime::Arena& weights;
  std::filesystem::path source;
};
Result<void> save_model(const std::filesystem::path& directory, const SaveModel& model);

}  // namespace tandem::actors
