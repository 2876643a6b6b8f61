// Whether a directory can hold a model as Hugging Face writes them, judged by the names and first
// bytes of its files. What people give in its place is told by name, with the way to what is
// wanted, before anything is read whole or allocated. Whether the files are right inside is said by
// who reads them (model_config.h, tokenizer.h, safetensors.h).
#pragma once

#include <cstdint>
#include <filesystem>

#include "runtime/base/result.h"

namespace tandem::actors {

// "Qwen/Qwen3-0.6B": two plain names, as models are called on the Hugging Face Hub.
bool is_hub_id(const std::filesystem::path& path);

enum class ModelFiles : std::uint8_t {
  kWithoutWeights,  // config.json and tokenizer.json are all that is read
  kAll,
};

// Errors: the id of a model on the Hub, a GGUF file, an adapter, pointers of git-LFS, a download
// that is not complete, a checkpoint of pickles. A directory without config.json or tokenizer.json
// that shows none of these passes.
Result<void> check_model_directory(const std::filesystem::path& directory, ModelFiles needed);

}  // namespace tandem::actors
