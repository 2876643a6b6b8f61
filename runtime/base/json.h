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

// The limit that `text` exceeds, in words for a message: "nested more than 64 deep". nullopt where
// `text` keeps both limits, whether or not it is JSON.
std::optional<std::string> json_over_limit(std::string_view text);

// The text of `value`. Never throws: bytes that are not UTF-8 are written as U+FFFD. `indent` is
// the number of spaces for each level; -1 writes one line.
std::string dump_json(const nlohmann::json& value, int indent = -1);

}  // namespace tandem
