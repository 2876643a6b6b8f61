// A YAML document of any program as a flat list of dotted keys, each with its value and its place:
// `a: {b: [1, 2]}` is the key `a.b` with the value [1, 2]. For the files of other programs; a job
// file is read by load_job.h. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace tandem::job {

inline constexpr std::size_t kYamlLeavesMax = 20000;  // values, those within lists among them

struct YamlLeaf {
  std::string key;       // "" where the document is a scalar or a list
  nlohmann::json value;  // a scalar, a list, null, or {} for an empty map
  int line = 0;          // from 1
};

// The leaves in the order of the text. Numbers, truth values and null are those of the core schema
// of YAML 1.2; .inf and .nan are texts. Errors are those of parse_yaml(), a key that is no text,
// one key twice in a map, and more than kYamlLeavesMax values. `origin` is the file's name in
// errors.
Result<std::vector<YamlLeaf>> yaml_leaves(std::string_view text, const std::string& origin);

// One value of a command line, as in `rollout.stop=["a", "b"]`; nullopt where `text` is no YAML.
std::optional<nlohmann::json> yaml_value_of(std::string_view text);

}  // namespace tandem::job
