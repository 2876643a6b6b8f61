// Checks whether a directory can hold a model as Hugging Face writes them, by the names and first
// bytes of its files. Common mistakes (a GGUF file, an adapter, a half downloaded repository) are
// recognised and named, with the way to a usable model, before anything is read whole or allocated.
// The contents of the files are checked by their readers (model_config.h, tokenizer.h,
// safetensors.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "runtime/base/enum_names.h"
#include "runtime/base/result.h"

namespace tandem::model {

// Whether `path` looks like a model's id on the Hugging Face Hub: two plain names, such as
// "Qwen/Qwen3-0.6B", of which the first is no usual name of a folder, as in "models/qwen". Does not
// look at the disk.
bool is_hub_id(const std::filesystem::path& path);

// Where the weights of a model come from.
enum class InitMode : std::uint8_t {
  kPretrained,  // weights from safetensors
  kRandom,  // weights from seed and initializer_range; needs config.json and tokenizer.json only
};
constexpr auto enum_names(InitMode) {
  using enum InitMode;
  return enum_name_rows<InitMode>({{kPretrained, "pretrained"}, {kRandom, "random"}});
}

enum class ModelFiles : std::uint8_t {
  kWithoutWeights,  // only config.json and tokenizer.json will be read
  kAll,             // the weights will be read as well
};

// Errors: the id of a model on the Hub, a GGUF file, an adapter, pointers of git-LFS, a download
// that is not complete, a checkpoint of pickles. A directory without config.json or tokenizer.json
// passes if it shows none of these mistakes; the reader of the missing file then reports it.
Result<void> check_model_directory(const std::filesystem::path& directory, ModelFiles needed);

// The file that holds the tokenizer of a directory without tokenizer.json in another form, such as
// SentencePiece's tokenizer.model. Tokenizer::read() refuses such a directory and says how to
// convert it.
std::optional<std::filesystem::path> other_tokenizer(const std::filesystem::path& directory);

}  // namespace tandem::model
