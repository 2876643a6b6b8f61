// One scalar of a YAML document, read strictly: a quoted number is a text, and a plain one is not.
// Numbers are decimal. Pure.
#pragma once

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tandem::job {

// A value that a job file may not have.
struct ValueError {
  std::string message;
  std::string help;
  YAML::Mark mark;  // where the node, or the item of a list, at fault stands
};

// Whether the scalar has no quotes: yaml-cpp gives a plain scalar the tag "?" and a quoted one "!".
bool is_plain(const YAML::Node& node);
// A number that is too great for the type becomes the greatest one, so that it is out of every
// range.
std::optional<std::int64_t> parse_integer(std::string_view text);
std::optional<double> parse_double(std::string_view text);
std::optional<bool> parse_bool(std::string_view text);
bool is_special_number(std::string_view text);  // .inf, .nan
bool looks_like_number(std::string_view text);

// A scalar without quotes that is a number, a truth value or null, as JSON; nullopt for a text.
struct PlainValue {
  enum Kind { kJson, kNoNumber } kind;  // kNoNumber: .inf and .nan, which JSON does not have
  std::string json;
};
std::optional<PlainValue> plain_value(const YAML::Node& node);

// "a list", "the string `abc`", "the number 3", "null": the value that the user wrote, for
// messages. Cut to 40 bytes.
std::string describe(const YAML::Node& node);

}  // namespace tandem::job
