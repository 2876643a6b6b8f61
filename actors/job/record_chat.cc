#include "actors/job/record_chat.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "actors/jinja/json_value.h"
#include "actors/job/job_values.h"
#include "runtime/base/check.h"
#include "runtime/base/json.h"

namespace tandem::job {
namespace {

using jinja::Value;
using nlohmann::json;

constexpr const char* kCalls = "tool_calls";

// A message with an empty list of calls counts as one without calls.
bool has_calls(const json& message) {
  const auto calls = message.is_object() ? message.find(kCalls) : message.end();
  return calls != message.end() && !(calls->is_array() && calls->empty());
}

// Finds what find_path() of runtime/base/json.h finds.
const Value* value_at(const Value& object, std::string_view path) {
  if (!object.is(jinja::Type::kDict)) return nullptr;
  const Value* const whole = object.as_dict().find_text(path);
  if (whole != nullptr && !whole->is_none()) return whole;
  const std::size_t dot = path.find('.');
  const Value* const outer =
      dot == path.npos ? nullptr : object.as_dict().find_text(path.substr(0, dot));
  const Value* const inner = outer ? value_at(*outer, path.substr(dot + 1)) : nullptr;
  return inner ? inner : whole;
}

// A column of a table gives every object the members of all; those that an object lacks are null.
Value without_nulls(const Value& value) {
  if (value.is(jinja::Type::kDict)) {
    jinja::Dict kept;
    for (const auto& [key, member] : value.as_dict().items())
      if (!member.is_none()) kept.set(key, without_nulls(member));
    return jinja::make_dict(std::move(kept));
  }
  if (!value.is(jinja::Type::kSequence)) return value;
  jinja::Values items;
  for (const Value& item : value.as_sequence().items) items.push_back(without_nulls(item));
  return jinja::make_list(std::move(items));
}

bool is_list_of_objects(const Value& value) {
  return value.is(jinja::Type::kSequence) &&
         std::ranges::all_of(value.as_sequence().items,
                             [](const Value& item) { return item.is(jinja::Type::kDict); });
}

// The tools of a line.
Result<Value> parse_tools(const Value& line, const std::string& where) {
  Value tools = *value_at(line, kTools);
  if (tools.is_string())
    if (auto parsed = jinja::parse_json_value(tools.text())) tools = *std::move(parsed);
  if (is_list_of_objects(tools)) return without_nulls(tools);
  return bad_line(where, "`tools` must be a list of objects, or its JSON as a text",
                  R"(as in [{"type": "function", "function": {"name": "add", "parameters": …}}])");
}

// A message as the template gets it; `calls` are its tool calls, nullptr where it has none. A
// template may read further fields, which are texts.
Result<Value> parse_message(const json& message, const Value* calls, std::size_t number,
                            const std::string& where) {
  const std::string at = "message " + std::to_string(number);
  const auto type_of = [](const json& value) {
    return std::string(value.is_null() ? "null" : value.type_name());
  };
  if (!message.is_object())
    return bad_line(where, at + " must be an object, found " + type_of(message),
                    R"(as in {"role": "user", "content": "Hello"})");
  if (calls != nullptr && !is_list_of_objects(*calls))
    return bad_line(where, "the tool_calls of " + at + " must be a list of objects",
                    R"(as in [{"type": "function", "function": {"name": "add", "arguments": …}}])");
  jinja::Dict made;
  for (const auto& [key, value] : message.items()) {
    const bool known = key == "role" || key == "content";
    if (key == kCalls) {
      if (calls != nullptr) made.set(key, without_nulls(*calls));
    } else if (value.is_string() || (value.is_null() && !known)) {
      made.set(key, jinja::value_of(value));
    } else {
      constexpr const char* kHelp =
          "messages of this version have a role, a text and tool_calls: no images";
      if (!known) return bad_line(where, at + " has `" + key + "`", kHelp);
      return bad_line(
          where, "the " + key + " of " + at + " must be a string, found " + type_of(value), kHelp);
    }
  }
  if (!message.contains("role")) return bad_line(where, at + " has no role");
  if (!message.contains("content") && calls == nullptr)
    return bad_line(where, at + " has no content");
  return jinja::make_dict(std::move(made));
}

Value without_calls(const Value& messages) {
  jinja::Values kept;
  for (const Value& message : messages.as_sequence().items) {
    jinja::Dict rest;
    for (const auto& [key, value] : message.as_dict().items())
      if (!key.is_string() || key.text() != kCalls) rest.set(key, value);
    kept.push_back(jinja::make_dict(std::move(rest)));
  }
  return jinja::make_list(std::move(kept));
}

Error not_shown(std::string what, const std::string& where) {
  return bad_line(where, "the line has `" + what + "`, and the chat template shows nothing of them",
                  "data.chat_template chooses another template; or leave the field out; or, where "
                  "the reward alone reads it, name it in data.extra_keys");
}

}  // namespace

Error bad_line(const std::string& where, std::string message, std::string help) {
  return {ErrorCode::kInvalid, std::move(message), where, std::move(help)};
}

Result<void> RecordChat::read_format(const std::string& where) {
  if (format_) return {};
  const auto kwargs = jinja::parse_json_value(source_.kwargs);
  if (!kwargs)
    return Error{ErrorCode::kInvalid, "`data.chat_template_kwargs`: " + kwargs.error().message,
                 where, ""};
  for (const auto& [key, value] : kwargs->as_dict().items())
    options_.kwargs.emplace_back(key.text(), value);
  auto format = model::ChatFormat::read(source_.model, source_.chosen);
  if (!format)
    return Error{ErrorCode::kInvalid,
                 "a conversation at " + where + " needs a chat template: " + format.error().message,
                 format.error().where,
                 (format.error().help.empty() ? "" : format.error().help + "; ") +
                     "data.chat_template names another one: the path of a .jinja file, or one of " +
                     join(spellings<model::ChatTemplate>())};
  format_ = std::make_shared<const model::ChatFormat>(*std::move(format));
  return {};
}

Result<std::string> RecordChat::render(const model::ChatInput& input,
                                       const std::string& where) const {
  auto text = format_->render(input, options_);
  if (text) return text;
  const Error& error = text.error();
  return bad_line(where, error.message,
                  error.where.empty() ? "" : "the template says so at " + error.where);
}

Result<std::string> RecordChat::text_of(const RecordConversation& conversation,
                                        const std::string& where) {
  if (auto ready = read_format(where); !ready) return ready.error();
  const json& messages = conversation.messages;
  const bool any_calls = std::ranges::any_of(messages, has_calls);
  const bool has_tools =
      conversation.has_tools && (format_->takes_tools() || !conversation.tools_are_optional);

  Value line;
  if (any_calls || has_tools) {
    const std::string_view list = conversation.list_key;
    auto parsed = jinja::parse_json_members(
        conversation.line,
        std::vector<std::string_view>{kTools, list, list.substr(0, list.find('.'))});
    if (!parsed) return bad_line(where, parsed.error().message);
    line = *std::move(parsed);
  }
  model::ChatInput input;
  if (has_tools) {
    auto tools = parse_tools(line, where);
    if (tools)
      input.tools = *std::move(tools);
    else if (!conversation.tools_are_optional)
      return tools.error();
  }
  jinja::Values parsed;
  const auto calls_of = [&](std::size_t i) -> const Value* {
    if (!has_calls(messages[i])) return nullptr;
    const Value* const list = value_at(line, conversation.list_key);
    CHECK(list != nullptr && list->as_sequence().items.size() <= messages.size());
    const jinja::Values& read = list->as_sequence().items;
    // A system prompt may have been put in front.
    return value_at(read[i - (messages.size() - read.size())], kCalls);
  };
  for (std::size_t i = 0; i < messages.size(); ++i) {
    auto one = parse_message(messages[i], calls_of(i), i + 1, where);
    if (!one) return one.error();
    parsed.push_back(*std::move(one));
  }
  input.messages = jinja::make_list(std::move(parsed));

  auto text = render(input, where);
  if (!text) return text;
  if (any_calls) {
    const auto without =
        render({.messages = without_calls(input.messages), .tools = input.tools}, where);
    if (without && *without == *text) return not_shown(kCalls, where);
  }
  const bool gives_tools = !input.tools.is_none() && !input.tools.as_sequence().items.empty();
  if (gives_tools && !conversation.tools_are_optional) {
    const auto without = render({.messages = input.messages}, where);
    if (without && *without == *text) return not_shown(kTools, where);
  }
  return text;
}

}  // namespace tandem::job
