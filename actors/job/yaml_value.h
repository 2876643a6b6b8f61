// Assigns one YAML node to one field of a JobSpec, by the type of the field and the limits of its
// key. Strict: a quoted number is a string, and a plain number is not one, so that `name: 17` is an
// error and not a silent guess. Pure, except that a word of an argv is looked up in the file
// system.
#pragma once

#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <optional>
#include <string>

#include "actors/job/job_table.h"
#include "actors/job/yaml_scalar.h"

namespace tandem::job {

// Relative paths start at `base`. nullopt: assigned. After an error the value of the field is
// unspecified, and the job must not be used.
std::optional<ValueError> assign(const Key& key, const FieldRef& field, const YAML::Node& node,
                                 const std::filesystem::path& base);

}  // namespace tandem::job
