// toml++ is used as its headers alone and without exceptions. It parses by recursion, with a limit
// of its own on nesting.
#include "actors/translate/read_toml.h"

#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#define TOML_MAX_NESTED_VALUES 64
// A key that begins as none may, as in `[:a]`, meets an assertion of toml++ just before the code
// that makes an error of it.
#define TOML_ASSERT(expr) static_cast<void>(expr)
#include <toml++/toml.h>

#include <sstream>

#include "runtime/base/text.h"

namespace tandem::translate {
namespace {

using nlohmann::json;

json json_of(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* whole = node.as_integer()) return whole->get();
  if (const auto* number = node.as_floating_point()) return number->get();
  if (const auto* truth = node.as_boolean()) return truth->get();
  if (const auto* list = node.as_array()) {
    json items = json::array();
    for (const toml::node& item : *list) items.push_back(json_of(item));
    return items;
  }
  if (const auto* table = node.as_table()) {
    json members = json::object();
    for (const auto& [key, member] : *table) members[std::string(key.str())] = json_of(member);
    return members;
  }
  std::ostringstream shown;  // a date or a time
  node.visit([&shown](const auto& value) {
    if constexpr (toml::is_chronological<std::remove_cvref_t<decltype(value)>>) shown << value;
  });
  return shown.str();
}

void add(const toml::table& table, const std::string& section, ForeignConfig& config) {
  for (const auto& [key, node] : table) {
    const std::string path =
        section.empty() ? std::string(key.str()) : section + "." + std::string(key.str());
    if (const toml::table* inner = node.as_table(); inner && !inner->empty())
      add(*inner, path, config);
    else
      config.set(
          {path, json_of(node), config.origin() + ":" + std::to_string(node.source().begin.line)});
  }
}

}  // namespace

Result<ForeignConfig> read_toml(std::string_view text, const std::string& origin) {
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    return Error{ErrorCode::kInvalid,
                 "not valid TOML: " + visible(error.description(), Lines::kOne),
                 origin + ":" + std::to_string(error.source().begin.line) + ":" +
                     std::to_string(error.source().begin.column),
                 "mend the line, or the one before it"};
  }
  ForeignConfig config(origin);
  add(parsed.table(), "", config);
  return config;
}

}  // namespace tandem::translate
