#include "runtime/base/json.h"

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
