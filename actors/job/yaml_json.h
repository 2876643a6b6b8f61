// A YAML map of the user's own as the text of a JSON object, for the arguments of a program. Pure.
#pragma once

#include <yaml-cpp/yaml.h>

#include "actors/job/actor_spec.h"
#include "actors/job/yaml_scalar.h"

namespace tandem::job {

// Plain scalars become numbers, truth values and null as in the rest of a job file; others are
// strings. The text is in one form, so that it reads back as itself. Errors: a map with a key twice
// or with a key that is no text, .inf and .nan, and more than kJsonObjectBytesMax bytes, which also
// bounds what aliases repeat. `name` is the key's, for messages.
std::optional<ValueError> json_of(const YAML::Node& map, const std::string& name,
                                  JsonObject& object);

}  // namespace tandem::job
