// Checks go from the most to the least certain: not a directory, an adapter, a GGUF file, pointers
// of git-LFS, missing weights. Each error names the thing that was found, and a command that gets
// or makes a usable directory.
#include "actors/model/model_directory.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "runtime/base/file.h"

namespace tandem::model {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kLfsPointer = "version https://git-lfs.github.com/";
constexpr std::string_view kGgufMagic = "GGUF";
constexpr const char* kWhatAModelIs =
    "a model is a directory with config.json, tokenizer.json and weights as safetensors";
// `hf download --local-dir` keeps files here until they are complete.
constexpr const char* kDownloads = ".cache/huggingface/download";

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

bool begins_with(const fs::path& file, std::string_view text) {
  return file_head(file, text.size()) == text;
}

// The names of a directory's entries, sorted, so that an error always names the same one of
// several. Empty where the directory cannot be read.
std::vector<std::string> names_in(const fs::path& directory) {
  std::vector<std::string> names;
  std::error_code failed;
  for (fs::directory_iterator at(directory, failed), end; !failed && at != end;
       at.increment(failed))
    names.push_back(at->path().filename().string());
  std::ranges::sort(names);
  return names;
}

std::optional<std::string> first_ending(const std::vector<std::string>& names,
                                        std::initializer_list<std::string_view> endings) {
  const auto found = std::ranges::find_if(names, [&](const std::string& name) {
    return std::ranges::any_of(endings, [&](auto ending) { return name.ends_with(ending); });
  });
  return found == names.end() ? std::nullopt : std::optional(*found);
}

bool is_plain_name(std::string_view name) {
  return !name.empty() && name.front() != '.' && std::ranges::all_of(name, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
  });
}

Error refuse(const std::string& what, const fs::path& where, const std::string& help) {
  return Error{.code = ErrorCode::kFailed, .message = what, .where = where.string(), .help = help};
}

Error refuse_gguf(const fs::path& file) {
  return refuse("this is a GGUF file, as llama.cpp reads them; " + std::string(kWhatAModelIs), file,
                "take the directory that it was made of: the same model in bf16 or f32");
}

Error not_a_directory(const fs::path& path) {
  if (is_there(path)) {
    if (begins_with(path, kGgufMagic)) return refuse_gguf(path);
    return refuse("this is a file; " + std::string(kWhatAModelIs), path, "name its directory");
  }
  if (!is_hub_id(path))
    return refuse("there is no such directory", path, std::string(kWhatAModelIs));
  return refuse(
      "there is no such directory: it looks like a model's id on the Hugging Face Hub, "
      "and Tandem downloads nothing",
      path,
      "get it with `hf download " + path.string() + " --local-dir " + path.filename().string() +
          "`, then name that directory");
}

Error refuse_adapter(const fs::path& directory) {
  return refuse("this is an adapter (LoRA), which holds changes of a model and not the model",
                directory / "adapter_config.json",
                "merge it first: python3 -c \"from peft import AutoPeftModelForCausalLM as M; "
                "M.from_pretrained('" +
                    directory.string() +
                    "').merge_and_unload().save_pretrained('MERGED')\", and copy the base model's "
                    "tokenizer.json there");
}

Error half_downloaded(const std::string& what, const fs::path& where) {
  return refuse(what + ": the download is not complete", where,
                "run the download again; `hf download ID --local-dir DIR` goes on where it ended");
}

// The error for a directory with neither model.safetensors nor an index of shards. The most
// specific explanation that the other files suggest comes first.
Error no_weights(const fs::path& directory, const std::vector<std::string>& names) {
  if (const auto gguf = first_ending(names, {".gguf"})) return refuse_gguf(directory / *gguf);
  if (first_ending(names_in(directory / kDownloads), {".incomplete"}))
    return half_downloaded("there are no weights yet", directory / kDownloads);
  if (const auto shard = first_ending(names, {".safetensors"}))
    return half_downloaded(
        "there is no model.safetensors, and no model.safetensors.index.json "
        "that says what this file is",
        directory / *shard);
  if (const auto pickle = first_ending(names, {".bin", ".pt", ".pth", ".bin.index.json"}))
    return refuse(
        "the weights are pickles of PyTorch; only safetensors are read", directory / *pickle,
        "write them anew: python3 -c \"from transformers import AutoModelForCausalLM as "
        "M; M.from_pretrained('" +
            directory.string() + "').save_pretrained('SAFE')\", and copy tokenizer.json there");
  return refuse("there is no model.safetensors, and no model.safetensors.index.json",
                directory / "model.safetensors",
                "a directory without weights is for `model.init: random`");
}

}  // namespace

bool is_hub_id(const fs::path& path) {
  const std::string owner = path.parent_path().string(), name = path.filename().string();
  constexpr std::string_view kFolders[] = {"models", "model",   "checkpoints", "checkpoint",
                                           "ckpts",  "data",    "weights",     "datasets",
                                           "output", "outputs", "runs",        "tmp"};
  return is_plain_name(owner) && is_plain_name(name) && std::ranges::count(kFolders, owner) == 0;
}

Result<void> check_model_directory(const fs::path& directory, ModelFiles needed) {
  std::error_code ignored;
  if (!fs::is_directory(directory, ignored)) return not_a_directory(directory);
  const std::vector<std::string> names = names_in(directory);
  const bool weights = is_there(directory / "model.safetensors") ||
                       is_there(directory / "model.safetensors.index.json");
  const bool config = is_there(directory / "config.json");
  // A merged model may keep its adapter_config.json, and then has weights of its own.
  if (is_there(directory / "adapter_config.json") && !weights) return refuse_adapter(directory);
  if (!config)
    if (const auto gguf = first_ending(names, {".gguf"})) return refuse_gguf(directory / *gguf);
  for (const std::string& name : names)
    if ((name.ends_with(".json") || name.ends_with(".safetensors")) &&
        begins_with(directory / name, kLfsPointer))
      // A clone without git-LFS has small text files under the right names.
      return refuse("this is a pointer that git-LFS puts in a file's place", directory / name,
                    "run `git lfs pull` in the clone, which fetches the file");
  if (needed == ModelFiles::kAll && config && !weights) return no_weights(directory, names);
  return {};
}

std::optional<fs::path> other_tokenizer(const fs::path& directory) {
  if (is_there(directory / "tokenizer.json")) return std::nullopt;
  for (const char* name :
       {"tokenizer.model", "spiece.model", "tekken.json", "qwen.tiktoken", "vocab.json"})
    if (is_there(directory / name)) return directory / name;
  return std::nullopt;
}

}  // namespace tandem::model
