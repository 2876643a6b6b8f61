#include "runtime/base/json.h"

#include <utility>
#include <vector>

// The instantiation that json.h declares extern.
template class nlohmann::basic_json<>;

namespace tandem {
namespace {

// Counts the open brackets outside strings, without recursion. Exact for valid JSON. Text that is
// not JSON may be taken for too deep; the parser would refuse such text anyway.
bool too_deep(std::string_view text) {
  std::size_t depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"')
      quoted = !quoted;
    else if (quoted)
      i += c == '\\' ? 1 : 0;  // skips the character behind it, which may be a quote
    else if (c == '[' || c == '{')
      ++depth;
    else if ((c == ']' || c == '}') && depth > 0)
      --depth;
    if (depth > kNestingMax) return true;
  }
  return false;
}

}  // namespace

const nlohmann::json* find_path(const nlohmann::json& object, std::string_view path) {
  if (!object.is_object()) return nullptr;
  const auto whole = object.find(path);
  const nlohmann::json* const member = whole == object.end() ? nullptr : &*whole;
  if (member && !member->is_null()) return member;
  const std::size_t dot = path.find('.');
  const auto outer = dot == path.npos ? object.end() : object.find(path.substr(0, dot));
  const nlohmann::json* const inner =
      outer == object.end() ? nullptr : find_path(*outer, path.substr(dot + 1));
  return inner ? inner : member;
}

void set_path(nlohmann::json& object, std::string_view path, nlohmann::json value) {
  if (const nlohmann::json* const found = find_path(object, path))
    const_cast<nlohmann::json&>(*found) = std::move(value);
  else
    object[std::string(path)] = std::move(value);
}

nlohmann::json parse_json(std::string_view text) {
  if (json_over_limit(text)) return nlohmann::json(nlohmann::json::value_t::discarded);
  return nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
}

std::optional<std::string> json_over_limit(std::string_view text) {
  if (text.size() > kJsonBytesMax) return "longer than " + std::to_string(kJsonBytesMax) + " bytes";
  if (too_deep(text)) return "nested more than " + std::to_string(kNestingMax) + " deep";
  return std::nullopt;
}

std::string dump_json(const nlohmann::json& value, int indent) {
  return value.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace tandem
