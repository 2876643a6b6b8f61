// simdjson reads a text in a tenth of the time that nlohmann::json takes for it. What it refuses is
// judged by parse_json(), which decides for the whole product: simdjson knows no integers of more
// than 64 bits, for example.
#include "actors/data/json_fields.h"

#include <simdjson.h>

#include <cstdint>
#include <optional>

#include "runtime/base/check.h"

namespace tandem::data {
namespace {

using Type = JsonField::Type;
using simdjson::dom::element;
using simdjson::dom::element_type;

// Longer texts are rare, and the parser of a thread would keep their memory.
constexpr std::size_t kFastBytesMax = std::size_t{1} << 20;

Type type_of(const element& value) {
  switch (value.type()) {
    case element_type::ARRAY:
      return Type::array;
    case element_type::OBJECT:
      return Type::object;
    case element_type::INT64:
      return std::int64_t{value} < 0 ? Type::number_integer : Type::number_unsigned;
    case element_type::UINT64:
      return Type::number_unsigned;
    case element_type::DOUBLE:
      return Type::number_float;
    case element_type::STRING:
      return Type::string;
    case element_type::BOOL:
      return Type::boolean;
    case element_type::NULL_VALUE:
      break;
  }
  return Type::null;
}

// The last member that is called `name`; nullopt where there is none.
std::optional<element> member(const element& object, std::string_view name) {
  std::optional<element> found;
  for (const auto& [key, value] : simdjson::dom::object(object))
    if (key == name) found = value;
  return found;
}

// Finds what find_path() of json.h finds.
std::optional<element> find_path(const element& object, std::string_view path) {
  if (!object.is_object()) return {};
  const auto whole = member(object, path);
  if (whole && !whole->is_null()) return whole;
  const std::size_t dot = path.find('.');
  if (dot == path.npos) return whole;
  const auto outer = member(object, path.substr(0, dot));
  const auto inner = outer ? find_path(*outer, path.substr(dot + 1)) : std::nullopt;
  return inner ? inner : whole;
}

Type scan_slowly(std::string_view text, std::span<JsonField> fields) {
  const nlohmann::json value = parse_json(text);
  for (JsonField& field : fields) {
    const nlohmann::json* const at = tandem::find_path(value, field.key);
    field.type = at ? at->type() : Type::discarded;
    field.text = at && at->is_string() ? at->get_ref<const std::string&>() : std::string();
  }
  return value.type();
}

}  // namespace

JsonField::Type scan_object(std::string_view text, std::span<JsonField> fields) {
  thread_local simdjson::dom::parser parser(kFastBytesMax);
  // A parser keeps the depth that it was made with.
  thread_local const auto failure = parser.allocate(kFastBytesMax / 16, kNestingMax);
  CHECK(!failure);
  element whole;
  if (parser.parse(text.data(), text.size()).get(whole)) return scan_slowly(text, fields);
  for (JsonField& field : fields) {
    field.type = Type::discarded;
    field.text.clear();
    const auto found = find_path(whole, field.key);
    if (!found) continue;
    field.type = type_of(*found);
    if (field.type == Type::string) field.text = std::string_view(*found);
  }
  return type_of(whole);
}

bool is_utf8(std::string_view text) { return simdjson::validate_utf8(text); }

}  // namespace tandem::data
