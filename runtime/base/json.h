// JSON text to values and back. json.cc is the one place that compiles nlohmann::json: a source
// that calls the library's own templates for parsing or printing compiles them again, which takes
// about five seconds each.
//
// Text is checked against limits before the parser sees it: the library copies, compares and prints
// a value by recursion, so that a few hundred kilobytes of brackets would overflow the stack.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>

extern template class nlohmann::basic_json<>;

namespace tandem {

// Levels of lists and objects within one another; the reader of YAML has the same limit.
inline constexpr std::size_t kNestingMax = 64;
// The most bytes of one text; the largest texts are the files of tokenizers.
inline constexpr std::size_t kJsonBytesMax = std::size_t{256} << 20;

// The value of `text`. The result `is_discarded()` where `text` is not JSON, or is over a limit.
nlohmann::json parse_json(std::string_view text);

// A value within an object is named by a path: `a.b` is the member `a.b` where the object has one
// that is not null, else the member `b` of the object `a`, and so on for more dots. A path without
// a dot is the name of a member.
//
// Returns nullptr where `object` has no such value, or is no object. A null is found where nothing
// else of that path is.
const nlohmann::json* find_path(const nlohmann::json& object, std::string_view path);

// Gives the value that find_path() finds the value `value`; where there is none, adds the member
// whose name is the whole path, which find_path() finds first. `object` must be an object.
void set_path(nlohmann::json& object, std::string_view path, nlohmann::json value);

// A value within an object, which scan_object() looks for.
struct JsonField {
  using Type = nlohmann::json::value_t;
  std::string_view key = {};    // its path, as find_path() takes it
  Type type = Type::discarded;  // of the value; discarded: the object has none
  std::string text = {};        // the value, where it is a string
};

// Finds `fields` in the JSON object `text` without building a value, in about half of the time and
// without its memory. Returns the type of the whole text, discarded where parse_json() refuses it;
// the fields of a text that is no object are undefined. Finds what find_path() finds in the value
// of parse_json(), where the last of several members with one name counts.
JsonField::Type scan_object(std::string_view text, std::span<JsonField> fields);

// The limit that `text` exceeds, in words for a message: "nested more than 64 deep". nullopt where
// `text` keeps both limits, whether or not it is JSON.
std::optional<std::string> json_over_limit(std::string_view text);

// The text of `value`. Never throws: bytes that are not UTF-8 are written as U+FFFD. `indent` is
// the number of spaces for each level; -1 writes one line.
std::string dump_json(const nlohmann::json& value, int indent = -1);

}  // namespace tandem
