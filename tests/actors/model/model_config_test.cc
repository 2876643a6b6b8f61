// config.json of several families and versions of transformers is read, and each key that the
// decoder does not support is refused by name.
#include "actors/model/model_config.h"

#include <gtest/gtest.h>

#include "runtime/base/json.h"
#include "tests/actors/model/tiny_model.h"

namespace tandem::model {
namespace {

using nlohmann::json;

json valid() { return parse_json(config_json(testing::tiny_config())); }

Result<ModelConfig> parse(const json& config) {
  return parse_model_config(config.dump(), "DIR/config.json");
}

std::optional<kernels::RopeScaling> llama3_scaling() {
  return kernels::RopeScaling{
      .factor = 32, .low_freq_factor = 1, .high_freq_factor = 4, .original_positions = 8192};
}

// The parse must fail, naming the file and `what`.
void expect_refused(const json& config, const std::string& what) {
  const Result<ModelConfig> parsed = parse(config);
  ASSERT_FALSE(parsed.has_value()) << what;
  EXPECT_NE(parsed.error().message.find(what), std::string::npos) << parsed.error().message;
  EXPECT_NE(parsed.error().where.find("DIR/config.json"), std::string::npos);
}

TEST(ModelConfig, ReadsBackWhatItWrites) {
  ModelConfig config = testing::tiny_config();
  config.eos_token_ids = {3, 1};
  config.bos_token_id = 5;
  config.rms_norm_eps = 1e-5;
  config.initializer_range = 0.123456789;
  for (const Family family : {Family::kQwen3, Family::kQwen2, Family::kLlama}) {
    config.family = family;
    for (const auto& scaling : {std::optional<kernels::RopeScaling>(), llama3_scaling()}) {
      config.rope_scaling = scaling;
      const Result<ModelConfig> read = parse_model_config(config_json(config), "config.json");
      ASSERT_TRUE(read.has_value()) << render(read.error());
      EXPECT_EQ(*read, config);
      EXPECT_EQ(parse_json(config_json(config))["architectures"][0], architecture(family));
    }
  }
}

TEST(ModelConfig, ReadsTransformers5AndItsPredecessors) {
  json config = valid();
  config.erase("rope_scaling");
  config["rope_theta"] = 5e5;
  EXPECT_EQ(parse(config)->rope_theta, 5e5);
  config["rope_scaling"] = {{"rope_type", "default"}};
  EXPECT_EQ(parse(config)->rope_theta, 5e5);
  config.erase("rope_theta");
  config.erase("rope_scaling");
  config["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 2e6}};
  config.erase("torch_dtype");
  config["dtype"] = "bfloat16";
  EXPECT_EQ(parse(config)->rope_theta, 2e6);
}

TEST(ModelConfig, ReadsLlama3ScalingByBothNames) {
  const json scaling = {{"rope_type", "llama3"},
                        {"factor", 32.0},
                        {"low_freq_factor", 1.0},
                        {"high_freq_factor", 4.0},
                        {"original_max_position_embeddings", 8192}};
  json config = valid();
  config["model_type"] = "llama";
  config["architectures"] = {"LlamaForCausalLM"};
  config["rope_theta"] = 5e5;
  config["rope_scaling"] = scaling;
  const Result<ModelConfig> four = parse(config);
  ASSERT_TRUE(four.has_value()) << render(four.error());
  EXPECT_EQ(four->rope_scaling, llama3_scaling());
  EXPECT_EQ(four->rope_theta, 5e5);
  config.erase("rope_scaling");
  config.erase("rope_theta");
  config["rope_parameters"] = scaling;
  config["rope_parameters"]["rope_theta"] = 5e5;
  EXPECT_EQ(*parse(config), *four);
  for (const char* key : {"factor", "low_freq_factor", "high_freq_factor",
                          "original_max_position_embeddings", "rope_theta"}) {
    json bad = config;
    bad["rope_parameters"][key] = -1;
    expect_refused(bad, std::string("'rope_parameters.") + key + "'");
    bad["rope_parameters"].erase(key);
    if (std::string(key) == "rope_theta") continue;  // Llama has a default
    expect_refused(bad, std::string("'rope_parameters.") + key + "'");
  }
  config["rope_parameters"]["factor"] = 0.5;
  expect_refused(config, "factor");
  config["rope_parameters"]["factor"] = 8;
  config["rope_parameters"]["high_freq_factor"] = 1;
  expect_refused(config, "high_freq_factor");
}

// Keys as the configurations of SmolLM2 and Llama 2 have them.
TEST(ModelConfig, FillsInWhatLlamaLeavesOut) {
  const Result<ModelConfig> config = parse({{"architectures", {"LlamaForCausalLM"}},
                                            {"model_type", "llama"},
                                            {"attention_bias", false},
                                            {"hidden_act", "silu"},
                                            {"hidden_size", 576},
                                            {"intermediate_size", 1536},
                                            {"max_position_embeddings", 8192},
                                            {"mlp_bias", false},
                                            {"num_attention_heads", 9},
                                            {"num_hidden_layers", 30},
                                            {"pretraining_tp", 1},
                                            {"rms_norm_eps", 1e-5},
                                            {"rope_interleaved", false},
                                            {"rope_scaling", nullptr},
                                            {"vocab_size", 49152}});
  ASSERT_TRUE(config.has_value()) << render(config.error());
  EXPECT_EQ(config->head_dim, 64);
  EXPECT_EQ(config->kv_heads, 9);
  EXPECT_EQ(config->rope_theta, 1e4);
  EXPECT_FALSE(config->qk_norm() || config->qkv_bias() || config->tie_word_embeddings);
}

TEST(ModelConfig, Qwen2HasBiasesAndTheKeysOfAWindowThatIsNotUsed) {
  json config = valid();
  config.update({{"model_type", "qwen2"},
                 {"architectures", {"Qwen2ForCausalLM"}},
                 {"hidden_size", 64},
                 {"use_sliding_window", false},
                 {"sliding_window", 32768},
                 {"max_window_layers", 28},
                 {"attention_dropout", 0.1}});
  config.erase("head_dim");
  const Result<ModelConfig> parsed = parse(config);
  ASSERT_TRUE(parsed.has_value()) << render(parsed.error());
  EXPECT_EQ(parsed->head_dim, 16);
  EXPECT_TRUE(parsed->qkv_bias() && !parsed->qk_norm());
  config["num_attention_heads"] = 6;
  expect_refused(config, "hidden_size");
}

// In bf16 16 floats fill half of the least part of a fused operand.
TEST(ModelConfig, RefusesADtypeThatLeavesGapsInTheBias) {
  ModelConfig config = testing::tiny_config();
  config.family = Family::kQwen2;
  config.hidden_size = 32;
  ASSERT_TRUE(compute_in(device::DType::kBF16, config).has_value());
  config.kv_heads = 1;
  const Result<void> refused = compute_in(device::DType::kBF16, config);
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().message.find("num_key_value_heads times head_dim (16)"),
            std::string::npos)
      << refused.error().message;
  config.family = Family::kLlama;
  EXPECT_TRUE(compute_in(device::DType::kBF16, config).has_value());
}

TEST(ModelConfig, TakesOneEosOrSeveralOrNone) {
  json config = valid();
  config["eos_token_id"] = 7;
  EXPECT_EQ(parse(config)->eos_token_ids, std::vector<std::int32_t>{7});
  config["eos_token_id"] = {7, 8};
  EXPECT_EQ(parse(config)->eos_token_ids, (std::vector<std::int32_t>{7, 8}));
  config["eos_token_id"] = nullptr;
  EXPECT_TRUE(parse(config)->eos_token_ids.empty());
}

TEST(ModelConfig, GenerationConfigWins) {
  const auto folder = testing::scratch_folder("generation");
  testing::write_model_folder(folder, testing::tiny_config());
  testing::write_text(folder / "generation_config.json",
                      R"({"eos_token_id": [4, 5], "pad_token_id": 6, "temperature": 0.6})");
  const Result<ModelConfig> config = read_model_config(folder);
  ASSERT_TRUE(config.has_value()) << render(config.error());
  EXPECT_EQ(config->eos_token_ids, (std::vector<std::int32_t>{4, 5}));
  EXPECT_EQ(config->pad_token_id, 6);
}

TEST(ModelConfig, RefusesByNameWhatTheDecoderDoesNotCompute) {
  const std::vector<std::pair<json, std::string>> refused = {
      {{{"model_type", "llama"}}, "Qwen3ForCausalLM"},
      {{{"model_type", "mistral"}}, "model_type 'mistral'"},
      {{{"model_type", "qwen3_moe"}}, "model_type 'qwen3_moe'"},
      {{{"model_type", nullptr}}, "model_type"},
      {{{"architectures", {"Qwen3ForSequenceClassification"}}}, "Qwen3ForSequenceClassification"},
      {{{"attention_bias", true}}, "attention_bias"},
      {{{"mlp_bias", true}}, "mlp_bias"},
      {{{"use_sliding_window", true}, {"sliding_window", 128}}, "use_sliding_window"},
      {{{"layer_types", {"full_attention", "sliding_attention"}}}, "sliding_attention"},
      {{{"hidden_act", "gelu"}}, "hidden_act 'gelu'"},
      {{{"partial_rotary_factor", 0.5}}, "partial_rotary_factor"},
      {{{"pretraining_tp", 2}}, "pretraining_tp"},
      {{{"num_experts", 8}}, "num_experts"},
      {{{"quantization_config", {{"bits", 4}}}}, "quantization_config"},
      {{{"rope_scaling", {{"rope_type", "yarn"}, {"factor", 4.0}}}}, "yarn"},
      {{{"rope_scaling", {{"type", "linear"}, {"factor", 4.0}}}}, "linear"},
      {{{"rope_scaling", {{"rope_type", "dynamic"}, {"factor", 4.0}}}}, "dynamic"},
      {{{"rope_parameters", {{"rope_theta", 1e4}, {"partial_rotary_factor", 0.5}}}},
       "partial_rotary_factor"}};
  for (const auto& [change, what] : refused) {
    json config = valid();
    config.update(change);
    expect_refused(config, what);
    EXPECT_FALSE(parse(config).error().help.empty()) << what;
  }
}

TEST(ModelConfig, NamesTheKeyThatIsMissingOrOutOfRange) {
  for (const char* key :
       {"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers",
        "num_attention_heads", "num_key_value_heads", "head_dim", "max_position_embeddings"}) {
    for (const json& bad : {json(), json(0), json(-3), json(INT64_MIN), json(INT64_MAX),
                            json(UINT64_MAX), json("64"), json(1.5), json(1e18)}) {
      json config = valid();
      config[key] = bad;
      expect_refused(config, std::string("'") + key + "'");
    }
    json config = valid();
    config.erase(key);
    expect_refused(config, key);
  }
  for (const auto& [key, bad] :
       std::vector<std::pair<const char*, json>>{{"rms_norm_eps", 0},
                                                 {"rms_norm_eps", nullptr},
                                                 {"rope_theta", -1},
                                                 {"rope_theta", nullptr},
                                                 {"initializer_range", "x"},
                                                 {"tie_word_embeddings", 1},
                                                 {"eos_token_id", 37},
                                                 {"eos_token_id", {1, -1}},
                                                 {"pad_token_id", "0"},
                                                 {"head_dim", 7},
                                                 {"num_attention_heads", 3},
                                                 {"hidden_size", 25},
                                                 {"intermediate_size", 41}}) {
    json config = valid();
    config[key] = bad;
    expect_refused(config, key);
  }
}

TEST(ModelConfig, PlacesSyntaxErrorsAndRepeatedKeys) {
  const Result<ModelConfig> broken =
      parse_model_config("{\n  \"vocab_size\": 3,,\n}", "DIR/config.json");
  ASSERT_FALSE(broken.has_value());
  EXPECT_EQ(broken.error().where, "DIR/config.json:2:19") << render(broken.error());
  const Result<ModelConfig> twice =
      parse_model_config(R"({"head_dim": 8, "head_dim": 16})", "DIR/config.json");
  ASSERT_FALSE(twice.has_value());
  EXPECT_NE(twice.error().message.find("'head_dim' occurs twice"), std::string::npos);
  EXPECT_FALSE(parse_model_config("[]", "f").has_value());
  EXPECT_FALSE(parse_model_config("", "f").has_value());
}

TEST(ModelConfig, ReadsTheGoldenConfigurations) {
  for (const char* name : {"grouped_untied_f32", "tied_bf16", "ungrouped_sharded_f16"}) {
    const Result<ModelConfig> config = read_model_config(testing::golden_folder() / name);
    ASSERT_TRUE(config.has_value()) << render(config.error());
    EXPECT_EQ(config->max_position_embeddings, 64);
    EXPECT_EQ(config->eos_token_ids, std::vector<std::int32_t>{1});
  }
}

}  // namespace
}  // namespace tandem::model
