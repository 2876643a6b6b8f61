// A model on disk and in memory: reads and writes Hugging Face directories.
//
// A directory holds config.json, tokenizer.json, model.safetensors (or shards with an index), and
// optionally generation_config.json, tokenizer_config.json and other files that save_model only
// copies.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "actors/model/model_config.h"
#include "actors/model/model_directory.h"
#include "actors/model/tokenizer.h"
#include "runtime/base/result.h"
#include "runtime/device/arena.h"
#include "runtime/device/manifest.h"
#include "runtime/device/parallel.h"

namespace tandem::model {

struct LoadOptions {
  InitMode init = InitMode::kPretrained;
  std::uint64_t seed = 0;                     // for random weights
  device::DType dtype = device::DType::kF32;  // in which the model is to compute
  // The threads that draw random weights or read the files; null: the calling thread. Borrowed for
  // the call.
  device::ThreadPool* threads = nullptr;
};

struct Model {
  std::filesystem::path directory;  // the model was read from here; save_model copies files from it
  ModelConfig config;
  Tokenizer tokenizer;
  device::Arena weights;  // f32, with its manifest
};

// Reads and checks everything: a truncated or mismatching file is an error that names file and
// tensor. Nothing is allocated for the weights before config and tokenizer have passed.
Result<Model> load_model(const std::filesystem::path& directory, const LoadOptions& options);

// Fills `weights`, laid out by make_manifest(config), from DIR's weight files, with the same
// checks. After an error its content is undefined.
struct LoadWeights {
  const ModelConfig& config;
  const device::Arena& weights;
  device::ThreadPool* threads = nullptr;
};
Result<void> load_weights(const std::filesystem::path& directory, const LoadWeights& load);

// Checks by the headers of DIR's weight files that they hold the parameters of `config`. Allocates
// nothing for weights and reads no value, so that a job can be checked when it is submitted.
Result<void> check_weights(const std::filesystem::path& directory, const ModelConfig& config);

// A model without its weights, for a rollout actor that receives them from a publisher.
struct ModelInfo {
  std::filesystem::path directory;
  ModelConfig config;
  Tokenizer tokenizer;
  device::Manifest manifest;  // lists the published weights
  // What the directory's files contradict each other in (contradictions.h), a sentence each.
  std::vector<std::string> warnings;
};
// config.eos_token_ids has the tokenizer's eos_token as well, where the two differ.
Result<ModelInfo> load_model_info(const std::filesystem::path& directory,
                                  device::DType dtype = device::DType::kF32);

// Writes a complete directory at `directory` (created if missing): config.json, model.safetensors
// (f32, Hugging Face names), and those files of `source` that describe its tokenizer and chat
// template (kCopiedFiles in checkpoint.cc), such as tokenizer.json, generation_config.json and
// chat_template.jinja. Each file is written under a temporary name, synced and renamed, so a reader
// never sees half a file. `weights` is laid out by the manifest of `config`. An existing directory
// is overwritten file by file: for an atomic checkpoint write a new directory and rename it.
struct SaveModel {
  const ModelConfig& config;
  const device::Arena& weights;
  std::filesystem::path source;
};
Result<void> save_model(const std::filesystem::path& directory, const SaveModel& model);

}  // namespace tandem::model
