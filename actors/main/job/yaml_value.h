// Assigns one YAML node to one field of a JobSpec, by the type of the field and the limits of its
// key. Strict: a quoted number is a string, and a plain number is not one, so that `name: 17` is an
// error and not a silent guess. Pure, except that a word of an argv is looked up in the file
// system.
#pragma once

#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <optional>
#include <string>

#include "actors/main/job/job_table.h"

namespace tandem::cli {

struct ValueError {
  std::string message;
  std::string help;
  YAML::Mark mark;  // where the node, or the item of a list, at fault stands
};

// Relative paths start at `base`. nullopt: assigned. After an error the value of the field is
// unspecified, and the job must not be used.
std::optional<ValueError> assign(const Key& key, const FieldRef& field, const YAML::Node& node,
                                 const std::filesystem::path& base);

// A scalar without quotes that is a number, a truth value or null, as JSON; nullopt for a text.
struct PlainValue {
  enum Kind { kJson, kNoNumber } kind;  // kNoNumber: .inf and .nan, which JSON does not have
  std::string json;
};
std::optional<PlainValue> plain_value(const YAML::Node& node);

// "a list", "the string `abc`", "the number 3", "null": the value that the user wrote, for
// messages. Cut to 40 bytes.
std::string describe(const YAML::Node& node);

}  // namespace tandem::cli
