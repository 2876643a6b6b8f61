// Finds a directory's template where transformers finds it, and gives it what apply_chat_template
// gives: messages without members that are null, reasoning under each of its three names, and the
// special tokens by name.
#include "actors/model/chat_format.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "actors/jinja/json_value.h"
#include "actors/model/json_file.h"
#include "actors/model/tokenizer.h"
#include "actors/model/utf8.h"
#include "runtime/base/file.h"

namespace tandem::model {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// The bound for a template's file, and for tokenizer_config.json, which lists all added tokens.
constexpr std::uint64_t kTemplateBytesMax = std::uint64_t{1} << 20;
constexpr std::uint64_t kConfigBytesMax = std::uint64_t{16} << 20;
constexpr std::string_view kAuto = "auto", kDefault = "default";
// transformers' SPECIAL_TOKENS_ATTRIBUTES
constexpr auto kSpecialTokens = std::to_array<const char*>(
    {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"});
// Names under which messages have their reasoning; the first one that has a value counts.
constexpr auto kReasoning =
    std::to_array<std::string_view>({"reasoning_content", "thinking", "reasoning"});

Error invalid(std::string message, std::string where = {}, std::string help = {}) {
  return {.code = ErrorCode::kInvalid,
          .message = std::move(message),
          .where = std::move(where),
          .help = std::move(help)};
}

// The names and texts of a directory's templates.
using Texts = std::vector<std::pair<std::string, std::string>>;
struct Found {
  Texts texts;
  std::string where;
};

Result<json> read_config(const fs::path& file) {
  std::error_code none;
  if (!fs::exists(file, none)) return json::object();
  auto config = read_json(file, kConfigBytesMax);
  if (config && !config->is_object()) return invalid("expected a JSON object", file.string());
  return config;
}

// `chat_template` of a configuration: a text, or a list of objects with a name and a template.
Result<Texts> texts_of(const json& config, const std::string& where) {
  Texts texts;
  const auto given = config.find("chat_template");
  if (given == config.end() || given->is_null()) return texts;
  if (given->is_string()) return Texts{{std::string(kDefault), given->get<std::string>()}};
  if (!given->is_array())
    return invalid("`chat_template` is neither a text nor a list of named ones", where);
  for (const json& one : *given) {
    const auto text_of = [&](const char* key) {
      return one.is_object() && one.contains(key) && one[key].is_string();
    };
    if (!text_of("name") || !text_of("template"))
      return invalid("an entry of `chat_template` has no `name` and `template`", where);
    texts.emplace_back(one["name"].get<std::string>(), one["template"].get<std::string>());
  }
  return texts;
}

// transformers prefers the file to the configuration, and has further templates in a folder.
Result<Found> find_texts(const fs::path& directory) {
  std::error_code none;
  Found found;
  if (const fs::path file = directory / "chat_template.jinja"; fs::exists(file, none)) {
    auto text = read_file(file, kTemplateBytesMax);
    if (!text) return text.error();
    found = {{{std::string(kDefault), *std::move(text)}}, file.string()};
    const fs::path more = directory / "additional_chat_templates";
    for (const fs::directory_entry& entry : fs::directory_iterator(more, none)) {
      if (entry.path().extension() != ".jinja") continue;
      auto other = read_file(entry.path(), kTemplateBytesMax);
      if (!other) return other.error();
      found.texts.emplace_back(entry.path().stem().string(), *std::move(other));
    }
    return found;
  }
  for (const char* name : {"chat_template.json", "tokenizer_config.json"}) {
    const fs::path file = directory / name;
    const auto config = read_config(file);
    if (!config) return config.error();
    auto texts = texts_of(*config, file.string());
    if (!texts) return texts.error();
    if (!texts->empty()) return Found{*std::move(texts), file.string()};
  }
  return found;
}

Error no_template(const fs::path& directory, std::string_view choice, const Found& found) {
  if (found.texts.empty())
    return {.code = ErrorCode::kNotFound,
            .message = "the model has no chat template",
            .where = directory.string(),
            .help =
                "a model that was trained on conversations has one in chat_template.jinja or "
                "tokenizer_config.json"};
  std::string names;
  for (const auto& [name, text] : found.texts) names += (names.empty() ? "" : ", ") + name;
  return {.code = ErrorCode::kNotFound,
          .message = choice == kAuto
                         ? "the model has several chat templates, and none is `default`"
                         : "the model has no chat template `" + std::string(choice) + "`",
          .where = found.where,
          .help = "its templates are: " + names};
}

// A token is a text, or an object that has it as `content`.
std::optional<std::string> token_text(const json& token) {
  if (token.is_string()) return token.get<std::string>();
  if (token.is_object() && token.contains("content") && token["content"].is_string())
    return token["content"].get<std::string>();
  return {};
}

Result<std::vector<std::pair<std::string, jinja::Value>>> read_special_tokens(
    const fs::path& directory) {
  const auto config = read_config(directory / "tokenizer_config.json");
  if (!config) return config.error();
  const auto map = read_config(directory / "special_tokens_map.json");
  if (!map) return map.error();
  std::vector<std::pair<std::string, jinja::Value>> tokens;
  for (const char* name : kSpecialTokens) {
    // A token that the configuration has as null is none.
    const json& source = config->contains(name) ? *config : *map;
    if (!source.contains(name)) continue;
    if (auto text = token_text(source[name])) tokens.emplace_back(name, *std::move(text));
  }
  return tokens;
}

// 26 Jul 2024; nothing where the text is no such date.
std::optional<std::tm> day_of(const std::string& date) {
  std::tm day{};
  const char* const end = ::strptime(date.c_str(), "%d %b %Y", &day);
  return end != nullptr && *end == '\0' ? std::optional(day) : std::nullopt;
}

// A message as a template sees it; nothing where it is no dict.
std::optional<jinja::Value> seen_message(const jinja::Value& message) {
  if (!message.is(jinja::Type::kDict)) return {};
  const jinja::Dict& given = message.as_dict();
  const jinja::Value* reasoning = nullptr;
  for (const std::string_view name : kReasoning) {
    const jinja::Value* const value = given.find_text(name);
    if (reasoning == nullptr && value != nullptr && !value->is_none()) reasoning = value;
  }
  jinja::Dict seen;
  if (reasoning != nullptr) seen.set("thinking", *reasoning);
  for (const auto& [key, value] : given.items())
    if (!value.is_none()) seen.set(key, value);
  if (reasoning != nullptr) seen.set("reasoning_content", *reasoning);
  return jinja::make_dict(std::move(seen));
}

Result<jinja::Value> seen_messages(const jinja::Value& messages) {
  if (!messages.is(jinja::Type::kSequence)) return invalid("a conversation is a list of messages");
  jinja::Values seen;
  for (const jinja::Value& message : messages.as_sequence().items) {
    auto one = seen_message(message);
    if (!one) return invalid("message " + std::to_string(seen.size() + 1) + " is no object");
    seen.push_back(*std::move(one));
  }
  if (seen.empty()) return invalid("a conversation has at least one message");
  return jinja::make_list(std::move(seen));
}

// Texts of the form <|name|>, with the bars of DeepSeek as well, and <name_of_words>.
std::vector<std::string> markers_of(std::string_view text) {
  constexpr std::size_t kMarkerMax = 64;
  std::vector<std::string> markers;
  for (std::size_t open = text.find('<'); open != text.npos; open = text.find('<', open + 1)) {
    const std::size_t close = text.find_first_of("> \t\n<", open + 1);
    if (close == text.npos || text[close] != '>' || close - open > kMarkerMax) continue;
    const std::string_view inside = text.substr(open + 1, close - open - 1);
    const bool barred = inside.size() > 2 && (inside.front() == '|' || inside.starts_with("｜")) &&
                        (inside.back() == '|' || inside.ends_with("｜"));
    const bool words = inside.find('_') != inside.npos &&
                       inside.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == inside.npos;
    std::string marker(text.substr(open, close - open + 1));
    if ((barred || words) && std::ranges::count(markers, marker) == 0)
      markers.push_back(std::move(marker));
  }
  return markers;
}

}  // namespace

jinja::Value chat_message(std::string_view role, std::string_view content) {
  jinja::Dict message;
  message.set("role", role);
  message.set("content", content);
  return jinja::make_dict(std::move(message));
}

Result<ChatFormat> ChatFormat::read(const fs::path& directory, std::string_view choice) {
  if (const auto family = spelt<ChatTemplate>(choice)) return of_family(*family);
  auto special_tokens = read_special_tokens(directory);
  if (!special_tokens) return special_tokens.error();
  std::string text, where;
  if (choice.ends_with(".jinja")) {
    auto file = read_file(fs::path(choice), kTemplateBytesMax);
    if (!file) return file.error();
    text = *std::move(file);
    where = choice;
  } else {
    auto found = find_texts(directory);
    if (!found) return found.error();
    const std::string_view wanted = choice == kAuto ? kDefault : choice;
    const auto entry = std::ranges::find(found->texts, wanted, [](auto& one) { return one.first; });
    if (entry == found->texts.end()) return no_template(directory, choice, *found);
    text = std::move(entry->second);
    where = found->where;
  }
  auto parsed = jinja::Template::parse(text, where);
  if (!parsed) return parsed.error();
  ChatFormat format;
  format.template_ = *std::move(parsed);
  format.special_tokens_ = *std::move(special_tokens);
  format.probe();
  return format;
}

Result<ChatFormat> ChatFormat::of_text(std::string_view text, const std::string& where) {
  auto parsed = jinja::Template::parse(text, where);
  if (!parsed) return parsed.error();
  ChatFormat format;
  format.template_ = *std::move(parsed);
  format.probe();
  return format;
}

ChatFormat ChatFormat::of_family(ChatTemplate family) {
  ChatFormat format;
  format.family_ = family;
  format.probe();
  return format;
}

void ChatFormat::probe() {
  constexpr std::string_view kAnswer = "the-answer-of-the-probe";
  const ChatInput input{.messages = jinja::make_list({chat_message("user", "the question"),
                                                      chat_message("assistant", kAnswer)})};
  ChatFormatOptions options;
  options.add_generation_prompt = false;
  const auto text = render(input, options);
  if (!text) return;
  markers_ = markers_of(*text);
  const std::size_t answer = text->rfind(kAnswer);
  if (answer != text->npos) end_of_turn_ = text->substr(answer + kAnswer.size());
}

Result<std::string> ChatFormat::render_family(const ChatInput& input,
                                              const ChatOptions& options) const {
  std::vector<ChatMessage> messages;
  if (!input.tools.is_none())
    return invalid("the template `" + std::string(spelling(*family_)) + "` takes no tools");
  for (const jinja::Value& message : input.messages.as_sequence().items) {
    ChatMessage& made = messages.emplace_back();
    const std::string at = "message " + std::to_string(messages.size());
    for (const auto& [key, value] : message.as_dict().items()) {
      const std::string name = key.is_string() ? key.text() : "";
      if (value.is_none()) continue;
      if ((name != "role" && name != "content") || !value.is_string())
        return invalid(at + " has `" + name +
                       "`, which is no text or not known to `data.chat_template: " +
                       std::string(spelling(*family_)) + "`");
      (name == "role" ? made.role : made.content) = value.text();
    }
  }
  return render_chat(*family_, messages, options);
}

Result<std::string> ChatFormat::render(const ChatInput& input,
                                       const ChatFormatOptions& options) const {
  auto messages = seen_messages(input.messages);
  if (!messages) return messages.error();
  if (family_) return render_family(input, options);
  std::vector<std::pair<std::string, jinja::Value>> variables;
  const auto add = [&](std::string_view name, jinja::Value value) {
    variables.emplace_back(name, std::move(value));  // the first one of a name counts
  };
  add("messages", *std::move(messages));
  add("tools", input.tools);
  add("documents", input.documents);
  add("add_generation_prompt", options.add_generation_prompt);
  variables.insert(variables.end(), options.kwargs.begin(), options.kwargs.end());
  // A template's own default may be another one than true.
  if (!options.enable_thinking) add("enable_thinking", false);
  add("date_string", std::string_view(options.date));
  variables.insert(variables.end(), special_tokens_.begin(), special_tokens_.end());
  auto rendered = template_->render(variables, day_of(options.date));
  if (!rendered) return rendered.error();
  return std::move(rendered->text);
}

std::optional<std::string> marker_warning(const ChatFormat& format, const Tokenizer& tokenizer) {
  std::string missing;
  std::size_t count = 0, tokens = 0;
  for (const std::string& marker : format.markers()) {
    const auto encoded = tokenizer.encode(marker);
    if (encoded && encoded->size() == 1) continue;
    if (count++ < 4) missing += (missing.empty() ? "" : ", ") + marker;
    tokens += encoded ? encoded->size() : 0;
  }
  if (count == 0) return {};
  return "the chat template prints " + missing + (count > 4 ? ", …" : "") +
         ", which the model's tokenizer does not have as " + (count == 1 ? "a token" : "tokens") +
         " (" + std::to_string(tokens) +
         " plain tokens instead): the template is probably not this model's";
}

}  // namespace tandem::model
