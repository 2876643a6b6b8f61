#include "actors/model/checkpoint.h"

#include <optional>
#include <system_error>
#include <vector>

#include "actors/model/contradictions.h"
#include "actors/model/json_file.h"
#include "actors/model/model_directory.h"
#include "actors/model/parameters.h"
#include "actors/model/safetensors.h"
#include "runtime/base/file.h"

namespace tandem::model {
namespace {

// Files that training does not change. Those that `source` lacks are passed over.
constexpr const char* kCopiedFiles[] = {"tokenizer.json",
                                        "generation_config.json",
                                        "tokenizer_config.json",
                                        "special_tokens_map.json",
                                        "chat_template.jinja",
                                        "chat_template.json",
                                        "added_tokens.json",
                                        "vocab.json",
                                        "merges.txt",
                                        "tokenizer.model"};
// The limit per file. It guards against a directory in which one of these names is a huge file of
// another kind.
constexpr std::uint64_t kCopiedBytesMax = 256u << 20;

std::vector<NamedTensor> tensors_of(const device::Arena& arena) {
  std::vector<NamedTensor> tensors;
  for (const device::ParameterSpec& spec : arena.manifest().parameters) {
    const device::TensorView view = arena.view(spec.name);
    tensors.push_back(
        {spec.name, spec.shape, {view.f32(), static_cast<std::size_t>(view.elements())}});
  }
  return tensors;
}

// A tied model has no lm_head in its manifest, but its files may hold a copy under that name.
std::optional<TiedTensor> tied_of(const ModelConfig& config) {
  if (!config.tie_word_embeddings) return std::nullopt;
  return TiedTensor{kHeadName, kEmbeddingName};
}

// The weight files of a directory, opened and checked by their headers. No value has been read.
Result<TensorFiles> open_weights(const std::filesystem::path& directory,
                                 const ModelConfig& config) {
  if (Result<void> there = check_model_directory(directory, ModelFiles::kAll); !there)
    return there.error();
  std::vector<NamedTensor> wanted;
  for (const device::ParameterSpec& spec : make_manifest(config).parameters)
    wanted.push_back({spec.name, spec.shape, {}});
  const std::optional<TiedTensor> tied = tied_of(config);
  return TensorFiles::open(directory, wanted, tied ? &*tied : nullptr);
}

// config.json's vocab_size is often padded beyond the tokenizer's ids; the other way round, a
// prompt could contain a token that the embedding does not have.
Result<void> check_vocabulary(const ModelInfo& info) {
  const std::int64_t ids = info.tokenizer.vocab_size();
  if (ids <= info.config.vocab_size) return {};
  const auto last = static_cast<std::int32_t>(ids - 1);
  return Error{.message = "the tokenizer has token ids up to " + std::to_string(last) + " ('" +
                          info.tokenizer.decode({&last, 1}, SpecialTokens::kKeep) +
                          "'), but config.json's vocab_size is " +
                          std::to_string(info.config.vocab_size),
               .where = (info.directory / "tokenizer.json").string(),
               .help =
                   "tokenizer.json and config.json belong to different models, or tokens were "
                   "added without rows in the embedding: take them out of added_tokens, or "
                   "call resize_token_embeddings of transformers"};
}

}  // namespace

Result<ModelInfo> load_model_info(const std::filesystem::path& directory, device::DType dtype) {
  if (Result<void> usable = check_model_directory(directory, ModelFiles::kWithoutWeights); !usable)
    return usable.error();
  Result<ModelConfig> config = read_model_config(directory);
  if (!config) return config.error();
  if (Result<void> fits = compute_in(dtype, *config); !fits) return fits.error();
  Result<Tokenizer> tokenizer = Tokenizer::read(directory / "tokenizer.json");
  if (!tokenizer) return tokenizer.error();
  device::Manifest manifest = published_manifest(*config);
  ModelInfo info{directory, *std::move(config), *std::move(tokenizer), std::move(manifest), {}};
  if (Result<void> fits = check_vocabulary(info); !fits) return fits.error();
  Contradictions found = find_contradictions(directory, info.config, info.tokenizer);
  std::vector<std::int32_t>& ends = info.config.eos_token_ids;
  ends.insert(ends.end(), found.further_ends.begin(), found.further_ends.end());
  info.warnings = std::move(found.warnings);
  return info;
}

Result<void> check_weights(const std::filesystem::path& directory, const ModelConfig& config) {
  const Result<TensorFiles> files = open_weights(directory, config);
  if (!files) return files.error();
  return {};
}

Result<void> load_weights(const std::filesystem::path& directory, const LoadWeights& load) {
  const Result<TensorFiles> files = open_weights(directory, load.config);
  if (!files) return files.error();
  return files->read(tensors_of(load.weights), load.threads);
}

Result<Model> load_model(const std::filesystem::path& directory, const LoadOptions& options) {
  Result<ModelInfo> info = load_model_info(directory, options.dtype);
  if (!info) return info.error();
  // The files are checked before the arena is allocated: a wrong directory then fails at once,
  // instead of after gigabytes were set aside.
  std::optional<TensorFiles> files;
  if (options.init == InitMode::kPretrained) {
    Result<TensorFiles> opened = open_weights(directory, info->config);
    if (!opened) return opened.error();
    files = *std::move(opened);
  }
  Result<device::Arena> weights =
      device::Arena::allocate(make_manifest(info->config), "the model's weights");
  if (!weights) return weights.error();
  if (!files) {
    initialize({options.seed, info->config.initializer_range, options.threads}, *weights);
  } else if (auto read = files->read(tensors_of(*weights), options.threads); !read) {
    return read.error();
  }
  return Model{info->directory, std::move(info->config), std::move(info->tokenizer),
               *std::move(weights)};
}

Result<void> save_model(const std::filesystem::path& directory, const SaveModel& model) {
  std::error_code failed;
  std::filesystem::create_directories(directory, failed);
  if (failed) return file_error("create directory", directory, failed.value());
  const std::vector<NamedTensor> tensors = tensors_of(model.weights);
  if (Result<void> done = write_safetensors(directory / "model.safetensors", tensors); !done)
    return done;
  if (Result<void> done = write_file_atomic(directory / "config.json", config_json(model.config));
      !done)
    return done;
  for (const char* name : kCopiedFiles) {
    if (!std::filesystem::exists(model.source / name, failed)) continue;
    Result<std::string> text = read_file(model.source / name, kCopiedBytesMax);
    if (!text) return text.error();
    if (Result<void> done = write_file_atomic(directory / name, *text); !done) return done;
  }
  return {};
}

}  // namespace tandem::model
