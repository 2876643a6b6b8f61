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

// A member of an object, which scan_object() looks for.
struct JsonField {
  using Type = nlohmann::json::value_t;
  std::string_view key = {};
  Type type = Type::discarded;  // of its value; discarded: the object has no such member
  std::string text = {};        // the value, where it is a string
};

// Finds `fields` in the JSON object `text` without building a value, in about half of the time and
// without its memory. Returns the type of the whole text, discarded where parse_json() refuses it;
// the fields of a text that is no object are undefined. Where two members have one key, the last
// one counts, as in parse_json().
JsonField::Type scan_object(std::string_view text, std::span<JsonField> fields);

// The limit that `text` exceeds, in words for a message: "nested more than 64 deep". nullopt where
// `text` keeps both limits, whether or not it is JSON.
std::optional<std::string> json_over_limit(std::string_view text);

// The text of `value`. Never throws: bytes that are not UTF-8 are written as U+FFFD. `indent` is
// the number of spaces for each level; -1 writes one line.
std::string dump_json(const nlohmann::json& value, int indent = -1);

}  // namespace tandem
