// A path that is no model's directory is refused with its name and a remedy, before any file is
// read whole and any memory is allocated.
#include "actors/model/model_directory.h"

#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "actors/model/checkpoint.h"
#include "actors/model/parameters.h"
#include "runtime/base/json.h"
#include "tests/actors/model/tiny_model.h"

namespace tandem::model {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPointer =
    "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935\nsize 988097824\n";

// A directory that is whole, with its weights.
fs::path whole(const std::string& name, Family family = Family::kQwen3) {
  const fs::path folder = testing::scratch_folder(name);
  testing::write_model_folder(folder, testing::tiny_config(family));
  Result<Model> model = load_model(folder, {.init = InitMode::kRandom, .seed = 2});
  EXPECT_TRUE(
      save_model(folder, {.config = model->config, .weights = model->weights, .source = folder})
          .has_value());
  return folder;
}

// load_model must fail with `message` at `where`, and name a remedy.
void expect_refused(const fs::path& directory, const std::string& message, const std::string& where,
                    const std::string& help) {
  const Result<Model> model = load_model(directory, {});
  ASSERT_FALSE(model.has_value()) << message;
  EXPECT_NE(model.error().message.find(message), std::string::npos) << render(model.error());
  EXPECT_NE(model.error().where.find(where), std::string::npos) << render(model.error());
  EXPECT_NE(model.error().help.find(help), std::string::npos) << render(model.error());
}

TEST(ModelDirectory, AWholeOneIsLoaded) {
  for (const Family family : testing::kFamilies) {
    const Result<Model> model = load_model(whole("whole", family), {});
    EXPECT_TRUE(model.has_value()) << render(model.error());
  }
}

TEST(ModelDirectory, NamesAHubIdAndAPathThatIsNoDirectory) {
  expect_refused("Qwen/Qwen2.5-0.5B", "looks like a model's id", "Qwen/Qwen2.5-0.5B",
                 "hf download Qwen/Qwen2.5-0.5B --local-dir Qwen2.5-0.5B");
  expect_refused("/no/such/directory", "no such directory", "/no/such/directory", "config.json");
  const fs::path folder = testing::scratch_folder("files");
  testing::write_text(folder / "m.gguf", "GGUF\x03");
  testing::write_text(folder / "notes.txt", "hello");
  expect_refused(folder / "m.gguf", "GGUF", "m.gguf", "bf16 or f32");
  expect_refused(folder / "notes.txt", "this is a file", "notes.txt", "name its directory");
  expect_refused(folder, "GGUF", "m.gguf", "bf16 or f32");
  EXPECT_TRUE(is_hub_id("HuggingFaceTB/SmolLM2-135M-Instruct"));
  for (const char* path :
       {"models", "./models", "models/qwen", "data/x", "../x", "/a/b", "a/b/c", "a b/c", "a/", ""})
    EXPECT_FALSE(is_hub_id(path)) << path;
}

TEST(ModelDirectory, NamesAnAdapter) {
  const fs::path folder = testing::scratch_folder("adapter");
  testing::write_text(folder / "adapter_config.json", "{}");
  testing::write_text(folder / "adapter_model.safetensors", "x");
  expect_refused(folder, "adapter (LoRA)", "adapter_config.json", "merge_and_unload");
  testing::write_model_folder(folder, testing::tiny_config());
  expect_refused(folder, "adapter (LoRA)", "adapter_config.json", "merge_and_unload");
}

TEST(ModelDirectory, NamesPointersOfGitLfs) {
  for (const char* file : {"config.json", "tokenizer.json", "model.safetensors"}) {
    const fs::path folder = whole("lfs");
    testing::write_text(folder / file, kPointer);
    expect_refused(folder, "git-LFS", file, "git lfs pull");
  }
}

TEST(ModelDirectory, NamesWeightsOfOtherFormats) {
  const auto without_weights = [](const char* name) {
    const fs::path folder = whole(name);
    fs::remove(folder / "model.safetensors");
    return folder;
  };
  const fs::path none = without_weights("none");
  expect_refused(none, "no model.safetensors", "model.safetensors", "model.init: random");
  for (const char* pickle : {"pytorch_model.bin", "pytorch_model-00001-of-00002.bin", "model.pt"}) {
    const fs::path folder = without_weights("pickle");
    testing::write_text(folder / pickle, "PK\x03\x04");
    expect_refused(folder, "pickles", pickle, "save_pretrained");
  }
  const fs::path gguf = without_weights("gguf");
  testing::write_text(gguf / "model-Q4_K_M.gguf", "GGUF");
  expect_refused(gguf, "GGUF", "model-Q4_K_M.gguf", "bf16 or f32");
}

TEST(ModelDirectory, NamesADownloadThatIsNotComplete) {
  const fs::path folder = whole("half");
  fs::rename(folder / "model.safetensors", folder / "model-00001-of-00003.safetensors");
  expect_refused(folder, "download is not complete", "model-00001-of-00003.safetensors",
                 "run the download again");
  nlohmann::json map;
  for (int i = 1; i <= 3; ++i)
    map["t" + std::to_string(i)] = "model-0000" + std::to_string(i) + "-of-00003.safetensors";
  testing::write_text(folder / "model.safetensors.index.json",
                      nlohmann::json{{"weight_map", map}}.dump());
  expect_refused(folder, "2 of the 3 files", "model.safetensors.index.json",
                 "run the download again");
  expect_refused(folder, "model-00002-of-00003.safetensors", "model.safetensors.index.json",
                 "run the download again");
  const fs::path started = whole("started");
  fs::remove(started / "model.safetensors");
  fs::create_directories(started / ".cache/huggingface/download");
  testing::write_text(started / ".cache/huggingface/download/abc.incomplete", "x");
  expect_refused(started, "download is not complete", ".cache", "run the download again");
}

// For a model of this size an allocation would fail with another message.
TEST(ModelDirectory, NothingIsAllocatedForWeightsThatDoNotFit) {
  const fs::path folder = whole("huge");
  ModelConfig config = testing::tiny_config();
  config.intermediate_size = 1 << 20;
  config.hidden_size = 1 << 20;
  config.layers = 40;
  testing::write_text(folder / "config.json", config_json(config));
  expect_refused(folder, "has shape [37,24]; config.json asks for [37,1048576]",
                 "model.safetensors", "");
}

TEST(ModelDirectory, NamesQuantisedTensorsAndPassesOverOldFrequencies) {
  const fs::path folder = whole("quantised", Family::kLlama);
  const auto write = [&](const std::string& name, const char* dtype, std::size_t bytes) {
    const std::string header =
        nlohmann::json{{name, {{"dtype", dtype}, {"shape", {8}}, {"data_offsets", {0, bytes}}}}}
            .dump();
    std::string text(8, '\0');
    text[0] = static_cast<char>(header.size());
    testing::write_text(folder / "more.safetensors", text + header + std::string(bytes, '\0'));
  };
  const std::string frequencies = "model.layers.0.self_attn.rotary_emb.inv_freq";
  nlohmann::json map{{kFinalNormName, "model.safetensors"}, {frequencies, "more.safetensors"}};
  fs::rename(folder / "model.safetensors", folder / "weights.safetensors");
  map[kFinalNormName] = "weights.safetensors";
  testing::write_text(folder / "model.safetensors.index.json",
                      nlohmann::json{{"weight_map", map}}.dump());
  write(frequencies, "F32", 32);
  const Result<Model> old = load_model(folder, {});
  EXPECT_TRUE(old.has_value()) << render(old.error());
  write(frequencies, "I8", 8);
  expect_refused(folder, "dtype I8", "more.safetensors", "quantised");
}

// The tokenizer of these directories has <eos>, id 16, and <pad>, id 17; config.json ends at 1.
ModelInfo info_with(const std::map<std::string, std::string>& files) {
  const fs::path folder = testing::scratch_folder("contradicting");
  testing::write_model_folder(folder, testing::tiny_config());
  for (const auto& [name, text] : files) testing::write_text(folder / name, text);
  Result<ModelInfo> info = load_model_info(folder);
  CHECK(info.has_value());
  return *std::move(info);
}

TEST(Contradictions, ATokenizersOtherEndEndsCompletionsTooAndIsTold) {
  using Ids = std::vector<std::int32_t>;
  for (const auto& [file, text] :
       {std::pair("tokenizer_config.json", R"({"eos_token": "<eos>"})"),
        std::pair("tokenizer_config.json", R"({"eos_token": {"content": "<eos>"}})"),
        std::pair("special_tokens_map.json", R"({"eos_token": {"content": "<eos>"}})")}) {
    const ModelInfo info = info_with({{file, text}});
    EXPECT_EQ(info.config.eos_token_ids, (Ids{1, 16}));
    ASSERT_EQ(info.warnings.size(), 1u) << text;
    EXPECT_NE(info.warnings[0].find("'<eos>' of " + std::string(file) + ", id 16"),
              std::string::npos)
        << info.warnings[0];
  }
  const ModelInfo agrees = info_with({{"tokenizer_config.json", R"({"eos_token": "<eos>"})"},
                                      {"generation_config.json", R"({"eos_token_id": [1, 16]})"}});
  EXPECT_EQ(agrees.config.eos_token_ids, (Ids{1, 16}));
  EXPECT_TRUE(agrees.warnings.empty());
}

TEST(Contradictions, EachIsOneSentence) {
  const std::tuple<const char*, const char*, const char*> cases[] = {
      {"tokenizer_config.json", R"({"eos_token": "<|im_end|>"})", "'<|im_end|>' of"},
      {"tokenizer_config.json", R"({"add_bos_token": true})", "add_bos_token: true"},
      {"tokenizer_config.json", "[1]", "tokenizer_config.json of the model cannot be read"},
      {"tokenizer_config.json", "{", "cannot be read"},
      {"generation_config.json", R"({"eos_token_id": 5})", "generation_config.json, 5"}};
  for (const auto& [file, text, warning] : cases) {
    const ModelInfo info = info_with({{file, text}});
    ASSERT_EQ(info.warnings.size(), 1u) << text;
    EXPECT_NE(info.warnings[0].find(warning), std::string::npos) << info.warnings[0];
  }
  for (const char* text : {"{}", R"({"eos_token": null, "add_bos_token": false})",
                           R"({"eos_token": 7, "add_bos_token": "yes"})"})
    EXPECT_TRUE(info_with({{"tokenizer_config.json", text}}).warnings.empty()) << text;
  EXPECT_TRUE(info_with({}).warnings.empty());
}

TEST(Contradictions, ATokenBeyondTheEmbeddingIsNamed) {
  const fs::path folder = testing::scratch_folder("beyond");
  testing::write_model_folder(folder, testing::tiny_config());
  nlohmann::json tokenizer = parse_json(testing::character_tokenizer("ab"));
  tokenizer["added_tokens"].push_back({{"id", 37}, {"content", "<image>"}, {"special", true}});
  testing::write_text(folder / "tokenizer.json", tokenizer.dump());
  expect_refused(folder, "token ids up to 37 ('<image>')", "tokenizer.json",
                 "resize_token_embeddings");
}

}  // namespace
}  // namespace tandem::model
