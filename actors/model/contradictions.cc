#include "actors/model/contradictions.h"

#include <algorithm>
#include <system_error>

#include "actors/model/json_file.h"

namespace tandem::model {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Ids = std::vector<std::int32_t>;

constexpr std::uint64_t kBytesMax = 16u << 20;  // of a file that only configures
constexpr std::size_t kTokenBytesMax = 1000;    // of a token's text

// The object in DIR/name. Null where there is no such file; a warning where it is no JSON object.
json object_of(const fs::path& directory, const char* name, std::vector<std::string>& warnings) {
  std::error_code ignored;
  if (!fs::exists(directory / name, ignored)) return nullptr;
  Result<json> read = read_json(directory / name, kBytesMax);
  if (read && read->is_object()) return *std::move(read);
  warnings.push_back(std::string(name) + " of the model cannot be read" +
                     (read ? "" : ": " + read.error().message));
  return nullptr;
}

// The text of a special token, which is a string or an object with `content`.
std::string token_text(const json& object, const char* key) {
  if (!object.is_object() || !object.contains(key)) return "";
  const json& value = object[key];
  const json& text = value.is_object() && value.contains("content") ? value["content"] : value;
  if (!text.is_string() || text.get_ref<const std::string&>().size() > kTokenBytesMax) return "";
  return text.get<std::string>();
}

// A number or a list of numbers, as config.json has its eos_token_id.
Ids ids_of(const json& object, const char* key) {
  Ids ids;
  if (!object.is_object() || !object.contains(key)) return ids;
  const json& value = object[key];
  for (const json& id : value.is_array() ? value : json::array({value}))
    if (id.is_number_integer()) ids.push_back(id.get<std::int32_t>());
  return ids;
}

std::string list_of(const Ids& ids) {
  std::string text;
  for (const std::int32_t id : ids) text += (text.empty() ? "" : ", ") + std::to_string(id);
  return text;
}

// The eos_token that the file `name` of the tokenizer gives, against the ids that end a completion.
void check_end(const std::string& eos, const char* name, const ModelConfig& config,
               const Tokenizer& tokenizer, Contradictions& found) {
  if (eos.empty()) return;
  const auto ids = tokenizer.encode(eos);
  if (!ids || ids->size() != 1) {
    found.warnings.push_back("the eos_token '" + eos + "' of " + name +
                             " is no token of tokenizer.json, so that no completion ends at it");
    return;
  }
  const std::int32_t id = ids->front();
  if (std::ranges::count(config.eos_token_ids, id) > 0) return;
  found.further_ends.push_back(id);
  const std::string token = "the eos_token '" + eos + "' of " + name + ", id " + std::to_string(id);
  found.warnings.push_back(
      config.eos_token_ids.empty()
          ? "the model's config.json names no eos_token_id: completions end at " + token
          : token + ", is not the eos_token_id of config.json or generation_config.json, " +
                list_of(config.eos_token_ids) + ": completions end at either");
}

}  // namespace

Contradictions find_contradictions(const fs::path& directory, const ModelConfig& config,
                                   const Tokenizer& tokenizer) {
  Contradictions found;
  const json generation = object_of(directory, "generation_config.json", found.warnings);
  const Ids used = ids_of(generation, "eos_token_id");
  const Ids unused = ids_of(object_of(directory, "config.json", found.warnings), "eos_token_id");
  if (!used.empty() && !unused.empty() && std::ranges::find_first_of(used, unused) == used.end())
    found.warnings.push_back("completions end at the eos_token_id of generation_config.json, " +
                             list_of(used) + ", and not at that of config.json, " +
                             list_of(unused));

  const char* const files[] = {"tokenizer_config.json", "special_tokens_map.json"};
  const json tokens = object_of(directory, files[0], found.warnings);
  std::string eos = token_text(tokens, "eos_token");
  const bool in_map = eos.empty();
  if (in_map) eos = token_text(object_of(directory, files[1], found.warnings), "eos_token");
  check_end(eos, files[in_map ? 1 : 0], config, tokenizer, found);

  const auto around = tokenizer.encode_prompt("");
  const bool adds = around && !around->empty();
  if (tokens.is_object() && tokens.contains("add_bos_token") &&
      tokens["add_bos_token"].is_boolean() && tokens["add_bos_token"].get<bool>() != adds)
    found.warnings.push_back(
        std::string("tokenizer_config.json has add_bos_token: ") + (adds ? "false" : "true") +
        ", and the post_processor of tokenizer.json, which is followed, adds " +
        (adds ? "a token to each prompt" : "no token to a prompt"));
  return found;
}

}  // namespace tandem::model
