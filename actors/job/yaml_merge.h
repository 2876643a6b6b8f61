// Merge keys of YAML 1.1 (yaml.org/type/merge.html): `<<: *defaults`, or `<<: [*one, *two]`, gives
// a map the members of other maps that it has not itself. yaml-cpp leaves them to its users. Pure.
#pragma once

#include <yaml-cpp/yaml.h>

#include <utility>
#include <variant>
#include <vector>

#include "actors/job/yaml_scalar.h"

namespace tandem::job {

using YamlMember = std::pair<YAML::Node, YAML::Node>;  // key and value, each with its own mark

// The members of a map: its own, then those that it merges in, of the first map that has the key.
// A map's own keys may be there twice, which the caller refuses. An error where `<<` is neither a
// map nor a list of maps, or where more than 1000 maps are merged, or 64 deep.
std::variant<std::vector<YamlMember>, ValueError> members_of(const YAML::Node& map);

}  // namespace tandem::job
