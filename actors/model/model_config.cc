#include "actors/model/model_config.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "actors/model/json_file.h"
#include "kernels/ops/attention.h"
#include "runtime/base/json.h"
#include "runtime/device/memory.h"

namespace tandem::actors {
namespace {

using nlohmann::json;

constexpr std::uint64_t kConfigBytesMax = 1 << 20;
constexpr std::int64_t kTokenIdMax = 1 << 24;
constexpr std::int64_t kWidthMax = 1 << 20;
constexpr std::int64_t kLayersMax = 4096;
constexpr std::int64_t kFusedMultiple = runtime::kAlignmentBytes / sizeof(float);
constexpr const char* kArchitecture = "Qwen3ForCausalLM";

struct IntegerRange {
  std::int64_t low, high;
};

// Reads keys of one object and remembers the first thing that is wrong, so that a long list of keys
// reads as a list.
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
      fail(key, "must be from " + std::to_string(range.low) + " to " + std::to_string(range.high));
    return number;
  }

  double positive(const json& object, const char* key, std::optional<double> fallback) {
    const auto at = object.find(key);
    if (at == object.end() || at->is_null()) {
      if (!fallback) missing(key);
      return fallback.value_or(0);
    }
    const double number = at->is_number() ? at->get<double>() : 0;
    if (!(number > 0) || !std::isfinite(number)) fail(key, "must be a positive number");
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

  // An id, a list of ids, or null.
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
  void refuse(const std::string& what) {
    report(what + " is not supported",
           "supported: Qwen3 (dense) with full attention and plain rotary embeddings");
  }

  const std::optional<Error>& error() const { return error_; }

 private:
  void missing(const char* key) { fail(key, "is missing"); }
  void report(const std::string& problem, const std::string& help) {
    if (!error_) error_ = Error{ErrorCode::kFailed, "model config: " + problem, file_, help};
  }

  const json& object_;
  std::string file_;
  std::optional<Error> error_;
};

void refuse_other_architectures(Fields& fields) {
  const std::string type = fields.text("model_type", "");
  if (type != "qwen3") return fields.refuse("model_type '" + type + "'");
  if (const json* names = fields.find("architectures")) {
    const bool known = names->is_array() && std::all_of(names->begin(), names->end(),
                                                        [](auto& n) { return n == kArchitecture; });
    if (!known) fields.refuse("architectures " + names->dump());
  }
}

void refuse_unsupported_features(Fields& fields) {
  for (const char* key : {"num_experts", "num_local_experts", "quantization_config"})
    if (fields.find(key)) fields.refuse(std::string("'") + key + "'");
  for (const char* key : {"attention_bias", "mlp_bias", "use_sliding_window"})
    if (fields.boolean(key, false)) fields.refuse(std::string("'") + key + "': true");
  if (const std::string act = fields.text("hidden_act", "silu"); act != "silu")
    fields.refuse("hidden_act '" + act + "'");
  if (const json* rate = fields.find("attention_dropout"); rate != nullptr && *rate != 0)
    fields.refuse("attention_dropout " + rate->dump());
  if (const json* types = fields.find("layer_types")) {
    if (!types->is_array()) return fields.fail("layer_types", "must be a list");
    for (const json& type : *types)
      if (type != "full_attention") fields.refuse("layer_types entry " + type.dump());
  }
}

// `rope_theta` beside `rope_scaling`, or both in `rope_parameters` (transformers 5).
double read_rope_theta(const json& object, Fields& fields) {
  const json* scope = &object;
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const json* rope = fields.find(key);
    if (rope == nullptr) continue;
    if (!rope->is_object()) return fields.fail(key, "must be an object"), 0;
    for (const char* type_key : {"rope_type", "type"}) {
      const auto type = rope->find(type_key);
      if (type != rope->end() && *type != "default")
        return fields.refuse(std::string(key) + " of type " + type->dump()), 0;
    }
    const auto part = rope->find("partial_rotary_factor");
    if (part != rope->end() && *part != 1.0)
      return fields.refuse(std::string(key) + ".partial_rotary_factor " + part->dump()), 0;
    if (rope->contains("rope_theta")) scope = rope;
  }
  return fields.positive(*scope, "rope_theta", std::nullopt);
}

void read_special_ids(Fields& fields, ModelConfig& config) {
  if (fields.find("eos_token_id"))
    config.eos_token_ids = fields.token_ids("eos_token_id", config.vocab_size);
  for (const auto& [key, id] :
       {std::pair{"bos_token_id", &config.bos_token_id}, {"pad_token_id", &config.pad_token_id}})
    if (const auto ids = fields.token_ids(key, config.vocab_size); !ids.empty()) *id = ids.front();
}

}  // namespace

Result<ModelConfig> parse_model_config(std::string_view text, const std::string& file) {
  Result<json> parsed = parse_json(text, file);
  if (!parsed) return parsed.error();
  if (!parsed->is_object())
    return Error{.message = "model config: must be a JSON object", .where = file};
  Fields fields(*parsed, file);
  refuse_other_architectures(fields);
  refuse_unsupported_features(fields);

  ModelConfig config;
  config.vocab_size = fields.integer("vocab_size", {1, kTokenIdMax});
  config.hidden_size = fields.integer("hidden_size", {1, kWidthMax});
  config.intermediate_size = fields.integer("intermediate_size", {1, kWidthMax});
  config.layers = fields.integer("num_hidden_layers", {1, kLayersMax});
  config.heads = fields.integer("num_attention_heads", {1, kWidthMax});
  config.kv_heads = fields.integer("num_key_value_heads", {1, kWidthMax});
  config.head_dim = fields.integer("head_dim", {1, kernels::kHeadChannelsMax});
  config.max_position_embeddings = fields.integer("max_position_embeddings", {1, INT32_MAX});
  config.rms_norm_eps = fields.positive(*parsed, "rms_norm_eps", std::nullopt);
  config.rope_theta = read_rope_theta(*parsed, fields);
  config.initializer_range = fields.positive(*parsed, "initializer_range", 0.02);
  config.tie_word_embeddings = fields.boolean("tie_word_embeddings", false);
  read_special_ids(fields, config);
  if (config.head_dim % kernels::kChunkPositions != 0)
    fields.fail("head_dim", "must be a multiple of 16");
  if (config.kv_heads > 0 && config.heads % config.kv_heads != 0)
    fields.fail("num_attention_heads", "must be a multiple of num_key_value_heads");
  if (config.kv_heads > 0 && config.heads / config.kv_heads > kernels::kGroupHeadsMax)
    fields.fail("num_attention_heads", "must be at most " +
                                           std::to_string(kernels::kGroupHeadsMax) +
                                           " times num_key_value_heads");
  if (config.heads > kWidthMax / std::max<std::int64_t>(config.head_dim, 1))
    fields.fail("num_attention_heads", "times head_dim is too large");
  // So that q|k|v and gate|up lie in an arena without gaps (manifest.h, MF-2).
  if (config.hidden_size * config.kv_width() % kFusedMultiple != 0)
    fields.fail("hidden_size", "times num_key_value_heads times head_dim must be a multiple of 16");
  if (config.hidden_size * config.intermediate_size % kFusedMultiple != 0)
    fields.fail("hidden_size", "times intermediate_size must be a multiple of 16");
  if (fields.error()) return *fields.error();
  return config;
}

Result<ModelConfig> read_model_config(const std::filesystem::path& directory) {
  const std::filesystem::path file = directory / "config.json";
  Result<std::string> text = read_text(file, kConfigBytesMax);
  if (!text) return text.error();
  Result<ModelConfig> config = parse_model_config(*text, file.string());
  const std::filesystem::path generation = directory / "generation_config.json";
  if (!config || !std::filesystem::exists(generation)) return config;
  Result<json> parsed = read_json(generation, kConfigBytesMax);
  if (!parsed) return parsed.error();
  if (!parsed->is_object())
    return Error{.message = "generation config: must be a JSON object", .where = generation};
  Fields fields(*parsed, generation.string());
  read_special_ids(fields, *config);
  if (fields.error()) return *fields.error();
  return config;
}

Result<void> compute_in(runtime::DType dtype, ModelConfig& config) {
  const auto multiple =
      static_cast<std::int64_t>(runtime::kAlignmentBytes / runtime::size_bytes(dtype));
  for (const std::int64_t width : {config.kv_width(), config.intermediate_size})
    if (config.hidden_size * width % multiple != 0)
      return Error{ErrorCode::kInvalid,
                   std::string("to compute in ") + runtime::name(dtype) +
                       ", the model's hidden_size times " + std::to_string(width) +
                       " must be a multiple of " + std::to_string(multiple),
                   "model.dtype"};
  config.dtype = dtype;
  return {};
}

std::string config_json(const ModelConfig& config) {
  const auto optional_id = [](const std::optional<std::int32_t>& id) {
    return id ? json(*id) : json();
  };
  nlohmann::ordered_json out;
  out["architectures"] = {kArchitecture};
  out["model_type"] = "qwen3";
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
  out["rope_scaling"] = nullptr;
  out["rope_theta"] = config.rope_theta;
  out["sliding_window"] = nullptr;
  out["tie_word_embeddings"] = config.tie_word_embeddings;
  out["torch_dtype"] = "float32";
  out["use_cache"] = true;
  out["use_sliding_window"] = false;
  out["vocab_size"] = config.vocab_size;
  return out.dump(2) + "\n";
}

}  // namespace tandem::actors
