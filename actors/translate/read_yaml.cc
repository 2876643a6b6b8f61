#include "actors/translate/read_yaml.h"

#include "actors/job/yaml_leaves.h"

namespace tandem::translate {

Result<ForeignConfig> read_yaml(std::string_view text, const std::string& origin) {
  auto leaves = job::yaml_leaves(text, origin);
  if (!leaves) return leaves.error();
  ForeignConfig config(origin);
  for (job::YamlLeaf& leaf : *leaves) {
    if (leaf.key.empty())
      return Error{ErrorCode::kInvalid, "the file holds no `key: value`", origin,
                   "give the configuration of a training run"};
    config.set({leaf.key, std::move(leaf.value), origin + ":" + std::to_string(leaf.line)});
  }
  return config;
}

}  // namespace tandem::translate
