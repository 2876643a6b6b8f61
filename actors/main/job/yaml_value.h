// One YAML node into one field of a JobSpec, by the field's type and the key's limits. Strict: a
// quoted number is a string, and a plain number is not one.
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
  YAML::Mark mark;  // of the node or of the list item at fault
};

// Relative paths start at `base`. The field is unspecified after an error.
std::optional<ValueError> assign(const Key& key, const FieldRef& field, const YAML::Node& node,
                                 const std::filesystem::path& base);

// "a list", "the string `abc`", "null": what the user wrote, for messages.
std::string describe(const YAML::Node& node);

}  // namespace tandem::cli
