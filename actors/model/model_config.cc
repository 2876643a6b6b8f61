// config.json is read key by key through Fields, which remembers the first error, so that
// parse_model_config is a flat list of keys and not a chain of early returns. Two kinds of checks
// follow each other: keys by which a model differs from the supported architectures are refused by
// name (refuse_*), and sizes are checked against the limits of the kernels and the arena's layout.
//
// Different versions of transformers put the same fact in different places, which this file hides:
// rope_theta and the rope scaling may be on the top level, in rope_scaling or in rope_parameters,
// and older files of Llama and Qwen2 leave out keys whose values follow from others.
#include "actors/model/model_config.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "actors/model/json_file.h"
#include "kernels/ops/attention.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/device/memory.h"

namespace tandem::model {
namespace {

using nlohmann::json;

constexpr std::uint64_t kModelConfigBytesMax = 1 << 20;
// Sizes far beyond any model. They keep products of two sizes within 64 bits.
constexpr std::int64_t kTokenIdMax = 1 << 24;
constexpr std::int64_t kWidthMax = 1 << 20;
constexpr std::int64_t kLayersMax = 4096;
// A parameter of a multiple of so many floats ends where the next one may begin, without padding.
constexpr std::int64_t kFusedMultiple = device::kAlignmentBytes / sizeof(float);
constexpr double kRopeThetaOfLlama = 1e4;  // where config.json has none, as in transformers
constexpr const char* kRopeType = "llama3";

struct FamilyName {
  Family family;
  const char* model_type;
  const char* architecture;
};
constexpr FamilyName kFamilies[] = {{Family::kQwen3, "qwen3", "Qwen3ForCausalLM"},
                                    {Family::kQwen2, "qwen2", "Qwen2ForCausalLM"},
                                    {Family::kLlama, "llama", "LlamaForCausalLM"}};

const FamilyName& name_of(Family family) {
  return *std::ranges::find(kFamilies, family, &FamilyName::family);
}

struct IntegerRange {
  std::int64_t low, high;
};

// Reads the keys of one JSON object and remembers the first error. After an error the returned
// values mean nothing: the caller asks for the error at the end, and then returns no configuration.
// An integer that is refused is returned as 0: products of sizes do not overflow before that.
class Fields {
 public:
  Fields(const json& object, std::string file) : object_(object), file_(std::move(file)) {}

  std::int64_t integer(const char* key, IntegerRange range) {
    const json* value = find(key);
    if (value == nullptr) return missing(key), 0;
    if (!value->is_number_integer()) return fail(key, "must be an integer"), 0;
    const auto number = value->is_number_unsigned() && value->get<std::uint64_t>() > INT64_MAX
                            ? INT64_MAX
                            : value->get<std::int64_t>();
    if (number < range.low || number > range.high)
      return fail(key, "must be from " + std::to_string(range.low) + " to " +
                           std::to_string(range.high)),
             0;
    return number;
  }

  // Reads a key of `object`, which is the whole object or one nested in it. For a nested object
  // `within` is that object's name and a dot, for the error.
  double positive(const json& object, const char* key, std::optional<double> fallback,
                  const std::string& within = "") {
    const auto at = object.find(key);
    if (at == object.end() || at->is_null()) {
      if (!fallback) missing(within + key);
      return fallback.value_or(0);
    }
    const double number = at->is_number() ? at->get<double>() : 0;
    if (!(number > 0) || !std::isfinite(number)) fail(within + key, "must be a positive number");
    return number;
  }

  bool boolean(const char* key, bool fallback) {
    const json* value = find(key);
    if (value == nullptr) return fallback;
    if (!value->is_boolean()) return fail(key, "must be true or false"), fallback;
    return value->get<bool>();
  }

  std::string text(const char* key, const std::string& fallback) {
    const json* value = find(key);
    if (value == nullptr) return fallback;
    if (!value->is_string()) return fail(key, "must be a string"), fallback;
    return value->get<std::string>();
  }

  // The value is an id, a list of ids, or null.
  std::vector<std::int32_t> token_ids(const char* key, std::int64_t vocab_size) {
    std::vector<std::int32_t> ids;
    const json* value = find(key);
    if (value == nullptr) return ids;
    const json list = value->is_array() ? *value : json::array({*value});
    for (const json& id : list) {
      if (!id.is_number_integer() || id.get<std::int64_t>() < 0 ||
          id.get<std::int64_t>() >= vocab_size)
        return fail(key, "must hold token ids below vocab_size"), ids;
      ids.push_back(id.get<std::int32_t>());
    }
    return ids;
  }

  // Null counts as absent, as transformers writes it for "not set".
  const json* find(const char* key) const {
    const auto at = object_.find(key);
    return at == object_.end() || at->is_null() ? nullptr : &*at;
  }

  void fail(const std::string& key, const std::string& problem) {
    report("key '" + key + "' " + problem, "");
  }
  void refuse(const std::string& what, const std::string& help) {
    report(what + " is not supported", help);
  }

  const std::optional<Error>& error() const { return error_; }

 private:
  void missing(const std::string& key) { fail(key, "is missing"); }
  void report(const std::string& problem, const std::string& help) {
    if (!error_) error_ = Error{ErrorCode::kFailed, "model config: " + problem, file_, help};
  }

  const json& object_;
  std::string file_;
  std::optional<Error> error_;
};

Family read_family(Fields& fields) {
  std::string supported = "supported:";
  for (const FamilyName& name : kFamilies)
    supported += std::string(&name == kFamilies ? " " : ", ") + name.architecture +
                 " (model_type " + name.model_type + ")";
  const std::string type = fields.text("model_type", "");
  const auto* const known = std::ranges::find(kFamilies, type, &FamilyName::model_type);
  if (known == std::end(kFamilies)) {
    fields.refuse("model_type '" + type + "'", supported);
    return Family::kQwen3;
  }
  if (const json* names = fields.find("architectures")) {
    const bool same = names->is_array() && std::ranges::all_of(*names, [&](const json& name) {
                        return name == known->architecture;
                      });
    if (!same) fields.refuse("architectures " + names->dump(), supported);
  }
  return known->family;
}

// Features of attention that the decoder lacks. Each would silently change the model's numbers.
void refuse_other_attention(Family family, Fields& fields) {
  // Qwen2 has no such key: its q, k and v have biases and o has none.
  if (fields.boolean("attention_bias", false) && family != Family::kQwen2)
    fields.refuse("'attention_bias': true",
                  "a bias of q, k and v is known of Qwen2ForCausalLM, and of o none");
  if (fields.boolean("use_sliding_window", false))
    fields.refuse("'use_sliding_window': true",
                  "attention is over all positions: where no sequence is longer than "
                  "sliding_window, set use_sliding_window to false, which changes no number");
  if (const json* part = fields.find("partial_rotary_factor"); part != nullptr && *part != 1.0)
    fields.refuse("'partial_rotary_factor' " + part->dump(), "every channel of a head turns");
  const json* types = fields.find("layer_types");
  if (types == nullptr) return;
  if (!types->is_array()) return fields.fail("layer_types", "must be a list");
  for (const json& type : *types)
    if (type != "full_attention")
      fields.refuse("layer_types entry " + type.dump(), "supported: \"full_attention\"");
}

// The same for features outside attention.
void refuse_other_features(Fields& fields) {
  for (const char* key : {"quantization_config", "compression_config"})
    if (fields.find(key))
      fields.refuse(std::string("'") + key + "'",
                    "quantised weights cannot be trained: take the checkpoint in bf16, f16 or f32 "
                    "that they were made of");
  for (const char* key : {"num_experts", "num_local_experts"})
    if (fields.find(key))
      fields.refuse(std::string("'") + key + "'", "mixtures of experts are not; dense models are");
  if (fields.boolean("mlp_bias", false))
    fields.refuse("'mlp_bias': true", "the MLP has no biases in any supported model");
  if (const std::string act = fields.text("hidden_act", "silu"); act != "silu" && act != "swish")
    fields.refuse("hidden_act '" + act + "'", "supported: 'silu'");
  if (const json* parts = fields.find("pretraining_tp"); parts != nullptr && *parts != 1)
    fields.refuse("'pretraining_tp' " + parts->dump(),
                  "set it to 1: the weights are the same, and only the order of sums differs");
}

// Reads the object `rope`, which is called `name` in the file. Returns its llama3 scaling, or
// nothing for the default type of rotary embedding.
std::optional<kernels::RopeScaling> read_rope_scaling(const json& rope, const std::string& name,
                                                      Fields& fields) {
  json type = "default";
  for (const char* key : {"type", "rope_type"})  // an older name, which may be beside the newer one
    if (rope.contains(key) && !rope[key].is_null()) type = rope[key];
  if (const auto part = rope.find("partial_rotary_factor"); part != rope.end() && *part != 1.0)
    fields.refuse(name + ".partial_rotary_factor " + part->dump(), "every channel of a head turns");
  if (type == "default") return std::nullopt;
  if (type != kRopeType) {
    fields.refuse(name + " of type " + type.dump(),
                  "supported: \"default\" and \"llama3\"; a model that was stretched with yarn, "
                  "dynamic or linear after its training works without it (set " +
                      name + " to null) up to the positions it was trained with");
    return std::nullopt;
  }
  const auto number = [&](const char* key) {
    return fields.positive(rope, key, std::nullopt, name + ".");
  };
  const kernels::RopeScaling scaling{
      .factor = number("factor"),
      .low_freq_factor = number("low_freq_factor"),
      .high_freq_factor = number("high_freq_factor"),
      .original_positions = number("original_max_position_embeddings")};
  if (scaling.factor < 1) fields.fail(name + ".factor", "must be at least 1");
  if (scaling.high_freq_factor <= scaling.low_freq_factor)
    fields.fail(name + ".high_freq_factor", "must be above low_freq_factor");
  return scaling;
}

// rope_theta is on the top level beside rope_scaling, or both are in rope_parameters
// (transformers 5).
void read_rope(const json& object, Fields& fields, ModelConfig& config) {
  const json* scope = &object;
  std::string within;
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const json* rope = fields.find(key);
    if (rope == nullptr) continue;
    if (!rope->is_object()) return fields.fail(key, "must be an object");
    if (auto scaling = read_rope_scaling(*rope, key, fields)) config.rope_scaling = scaling;
    if (!rope->contains("rope_theta")) continue;
    scope = rope;
    within = std::string(key) + ".";
  }
  std::optional<double> fallback;
  if (config.family == Family::kLlama) fallback = kRopeThetaOfLlama;
  config.rope_theta = fields.positive(*scope, "rope_theta", fallback, within);
}

// Older configurations of Llama have neither num_key_value_heads nor head_dim, and those of Qwen2
// have no head_dim. The missing values follow from the others.
void read_heads(Fields& fields, ModelConfig& config) {
  config.heads = fields.integer("num_attention_heads", {1, kWidthMax});
  const bool ungrouped = config.family == Family::kLlama && !fields.find("num_key_value_heads");
  config.kv_heads =
      ungrouped ? config.heads : fields.integer("num_key_value_heads", {1, kWidthMax});
  if (config.family == Family::kQwen3 || fields.find("head_dim")) {
    config.head_dim = fields.integer("head_dim", {1, kernels::kHeadChannelsMax});
  } else if (config.heads > 0) {
    config.head_dim = config.hidden_size / config.heads;
    if (config.hidden_size % config.heads != 0 || config.head_dim > kernels::kHeadChannelsMax)
      fields.fail("hidden_size", "over num_attention_heads must be a whole number of at most " +
                                     std::to_string(kernels::kHeadChannelsMax) +
                                     ", or head_dim be there");
  }
}

// Limits of the kernels (kernels/ops/attention.h): multiples of a chunk, and heads per group.
void check_heads(const ModelConfig& config, Fields& fields) {
  if (config.head_dim % kernels::kChunkPositions != 0)
    fields.fail("head_dim", "(" + std::to_string(config.head_dim) + ") must be a multiple of 16");
  if (config.kv_heads > 0 && config.heads % config.kv_heads != 0)
    fields.fail("num_attention_heads", "must be a multiple of num_key_value_heads");
  if (config.kv_heads > 0 && config.heads / config.kv_heads > kernels::kGroupHeadsMax)
    fields.fail("num_attention_heads", "must be at most " +
                                           std::to_string(kernels::kGroupHeadsMax) +
                                           " times num_key_value_heads");
  // The test is written as a division, because the product itself could overflow.
  if (config.heads > kWidthMax / std::max<std::int64_t>(config.head_dim, 1))
    fields.fail("num_attention_heads", "times head_dim is too large");
}

void read_special_ids(Fields& fields, ModelConfig& config) {
  if (fields.find("eos_token_id"))
    config.eos_token_ids = fields.token_ids("eos_token_id", config.vocab_size);
  for (const auto& [key, id] :
       {std::pair{"bos_token_id", &config.bos_token_id}, {"pad_token_id", &config.pad_token_id}})
    if (const auto ids = fields.token_ids(key, config.vocab_size); !ids.empty()) *id = ids.front();
}

// Uses the names of transformers 4, which transformers 5 reads as well.
nlohmann::ordered_json rope_scaling_json(const std::optional<kernels::RopeScaling>& scaling) {
  if (!scaling) return nullptr;
  nlohmann::ordered_json out;
  out["rope_type"] = kRopeType;
  out["factor"] = scaling->factor;
  out["low_freq_factor"] = scaling->low_freq_factor;
  out["high_freq_factor"] = scaling->high_freq_factor;
  out["original_max_position_embeddings"] = static_cast<std::int64_t>(scaling->original_positions);
  return out;
}

}  // namespace

const char* architecture(Family family) { return name_of(family).architecture; }

Result<ModelConfig> parse_model_config(std::string_view text, const std::string& file) {
  Result<json> parsed = parse_json(text, file);
  if (!parsed) return parsed.error();
  if (!parsed->is_object())
    return Error{.message = "model config: must be a JSON object", .where = file};
  Fields fields(*parsed, file);
  ModelConfig config;
  config.family = read_family(fields);
  refuse_other_attention(config.family, fields);
  refuse_other_features(fields);
  config.vocab_size = fields.integer("vocab_size", {1, kTokenIdMax});
  config.hidden_size = fields.integer("hidden_size", {1, kWidthMax});
  config.intermediate_size = fields.integer("intermediate_size", {1, kWidthMax});
  config.layers = fields.integer("num_hidden_layers", {1, kLayersMax});
  read_heads(fields, config);
  config.max_position_embeddings = fields.integer("max_position_embeddings", {1, INT32_MAX});
  config.rms_norm_eps = fields.positive(*parsed, "rms_norm_eps", std::nullopt);
  read_rope(*parsed, fields, config);
  config.initializer_range = fields.positive(*parsed, "initializer_range", 0.02);
  config.tie_word_embeddings = fields.boolean("tie_word_embeddings", false);
  read_special_ids(fields, config);
  check_heads(config, fields);
  // These multiples make q|k|v and gate|up lie in an arena without gaps (manifest.h, MF-2).
  if (config.hidden_size * config.kv_width() % kFusedMultiple != 0)
    fields.fail("hidden_size", "times num_key_value_heads times head_dim must be a multiple of 16");
  if (config.hidden_size * config.intermediate_size % kFusedMultiple != 0)
    fields.fail("hidden_size", "times intermediate_size must be a multiple of 16");
  if (fields.error()) return *fields.error();
  return config;
}

Result<ModelConfig> read_model_config(const std::filesystem::path& directory) {
  const std::filesystem::path file = directory / "config.json";
  Result<std::string> text = read_file(file, kModelConfigBytesMax);
  if (!text) return text.error();
  Result<ModelConfig> config = parse_model_config(*text, file.string());
  const std::filesystem::path generation = directory / "generation_config.json";
  if (!config || !std::filesystem::exists(generation)) return config;
  Result<json> parsed = read_json(generation, kModelConfigBytesMax);
  if (!parsed) return parsed.error();
  if (!parsed->is_object())
    return Error{.message = "generation config: must be a JSON object", .where = generation};
  Fields fields(*parsed, generation.string());
  read_special_ids(fields, *config);
  if (fields.error()) return *fields.error();
  return config;
}

Result<void> compute_in(device::DType dtype, ModelConfig& config) {
  const auto multiple =
      static_cast<std::int64_t>(device::kAlignmentBytes / device::size_bytes(dtype));
  struct Size {
    const char* what;
    std::int64_t elements;
  };
  const std::int64_t H = config.hidden_size, bias = config.qkv_bias() ? 1 : 0;
  for (const Size& size :
       {Size{"hidden_size times num_key_value_heads times head_dim", H * config.kv_width()},
        Size{"hidden_size times intermediate_size", H * config.intermediate_size},
        Size{"num_attention_heads times head_dim", bias * config.q_width()},
        Size{"num_key_value_heads times head_dim", bias * config.kv_width()}})
    if (size.elements % multiple != 0)
      return Error{ErrorCode::kInvalid,
                   std::string("to compute in ") + device::name(dtype) + ", the model's " +
                       size.what + " (" + std::to_string(size.elements) +
                       ") must be a multiple of " + std::to_string(multiple),
                   "model.dtype"};
  config.dtype = dtype;
  return {};
}

std::string config_json(const ModelConfig& config) {
  const auto optional_id = [](const std::optional<std::int32_t>& id) {
    return id ? json(*id) : json();
  };
  nlohmann::ordered_json out;
  out["architectures"] = {architecture(config.family)};
  out["model_type"] = name_of(config.family).model_type;
  out["attention_bias"] = false;
  out["attention_dropout"] = 0.0;
  out["bos_token_id"] = optional_id(config.bos_token_id);
  if (config.eos_token_ids.size() == 1)
    out["eos_token_id"] = config.eos_token_ids.front();
  else if (config.eos_token_ids.empty())
    out["eos_token_id"] = nullptr;
  else
    out["eos_token_id"] = config.eos_token_ids;
  out["pad_token_id"] = optional_id(config.pad_token_id);
  out["head_dim"] = config.head_dim;
  out["hidden_act"] = "silu";
  out["hidden_size"] = config.hidden_size;
  out["initializer_range"] = config.initializer_range;
  out["intermediate_size"] = config.intermediate_size;
  out["max_position_embeddings"] = config.max_position_embeddings;
  out["num_attention_heads"] = config.heads;
  out["num_hidden_layers"] = config.layers;
  out["num_key_value_heads"] = config.kv_heads;
  out["rms_norm_eps"] = config.rms_norm_eps;
  out["rope_scaling"] = rope_scaling_json(config.rope_scaling);
  out["rope_theta"] = config.rope_theta;
  out["sliding_window"] = nullptr;
  out["tie_word_embeddings"] = config.tie_word_embeddings;
  // The files that save_model writes are f32, whatever dtype the job computes in.
  out["torch_dtype"] = "float32";
  out["use_cache"] = true;
  out["use_sliding_window"] = false;
  out["vocab_size"] = config.vocab_size;
  return out.dump(2) + "\n";
}

}  // namespace tandem::model
