#include "actors/job/conversation.h"

#include <algorithm>
#include <utility>

#include "runtime/base/json.h"

namespace tandem::job {
namespace {

using nlohmann::json;

constexpr const char* kTextAlone = "contents of this version are text: no images, no audio";

void drop_nulls(json& object) {
  for (auto member = object.begin(); member != object.end();)
    member = member->is_null() ? object.erase(member) : std::next(member);
}

// The text of one part of a content. An error says what is wrong with the part, as in "has the type
// `image_url`".
Result<std::string> text_of_part(json part) {
  const auto wrong = [](std::string what) {
    return Error{.code = ErrorCode::kInvalid, .message = std::move(what)};
  };
  if (!part.is_object()) return wrong(std::string("must be an object, found ") + part.type_name());
  drop_nulls(part);
  const auto type = part.find("type");
  if (type == part.end() || !type->is_string()) return wrong("has no type");
  if (*type != "text") return wrong("has the type `" + type->get<std::string>() + "`");
  const auto text = part.find("text");
  if (text == part.end() || !text->is_string()) return wrong("has no text");
  for (const auto& [key, value] : part.items())
    if (key != "type" && key != "text") return wrong("has `" + key + "`");
  return text->get<std::string>();
}

bool is_system(const json& message) {
  const auto role = message.is_object() ? message.find("role") : message.end();
  return role != message.end() && (*role == "system" || *role == "developer");
}

}  // namespace

json conversation_of(std::string_view text) {
  return json::array({{{"role", "user"}, {"content", text}}});
}

Result<json> plain_messages(json messages, const std::optional<std::string>& system_prompt,
                            const std::string& where) {
  std::size_t number = 0;
  for (json& message : messages) {
    ++number;
    if (!message.is_object()) continue;
    drop_nulls(message);
    const auto content = message.find("content");
    if (content == message.end() || !content->is_array()) continue;
    std::string joined;
    for (std::size_t i = 0; i < content->size(); ++i) {
      const auto text = text_of_part((*content)[i]);
      if (!text)
        return Error{ErrorCode::kInvalid,
                     "part " + std::to_string(i + 1) + " of the content of message " +
                         std::to_string(number) + " " + text.error().message,
                     where, kTextAlone};
      joined += *text;
    }
    *content = std::move(joined);
  }
  if (system_prompt && !messages.empty() && std::ranges::none_of(messages, is_system))
    messages.insert(messages.begin(), json{{"role", "system"}, {"content", *system_prompt}});
  return messages;
}

}  // namespace tandem::job
