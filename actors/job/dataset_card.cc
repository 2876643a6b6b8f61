#include "actors/job/dataset_card.h"

#include <yaml-cpp/yaml.h>

#include <string_view>

#include "runtime/base/file.h"

namespace tandem::job {
namespace {

// The lines between the first `---` and the next one.
std::string_view front_matter(std::string_view text) {
  constexpr std::string_view kFence = "---\n";
  if (!text.starts_with(kFence)) return {};
  text.remove_prefix(kFence.size());
  const std::size_t end = text.find("\n---");
  return end == text.npos ? std::string_view() : text.substr(0, end + 1);
}

// A path, or a list of paths.
std::vector<std::string> patterns_of(const YAML::Node& paths, const std::string& folder) {
  std::vector<std::string> patterns;
  if (paths.IsScalar()) patterns.push_back(folder + paths.Scalar());
  if (paths.IsSequence())
    for (const YAML::Node& path : paths)
      if (path.IsScalar()) patterns.push_back(folder + path.Scalar());
  return patterns;
}

// data_files is a list of {split, path}, a map of splits to paths, or paths of the split train.
std::vector<CardSplit> splits_of(const YAML::Node& files, const std::string& folder) {
  std::vector<CardSplit> splits;
  if (files.IsMap()) {
    for (const auto& member : files)
      if (member.first.IsScalar())
        splits.push_back({member.first.Scalar(), patterns_of(member.second, folder)});
  } else if (files.IsSequence() && files.size() > 0 && files[0].IsMap()) {
    for (const YAML::Node& file : files)
      if (file.IsMap() && file["split"] && file["split"].IsScalar() && file["path"])
        splits.push_back({file["split"].Scalar(), patterns_of(file["path"], folder)});
  } else {
    splits.push_back({"train", patterns_of(files, folder)});
  }
  std::erase_if(splits, [](const CardSplit& split) { return split.patterns.empty(); });
  return splits;
}

std::vector<CardConfig> configs_of(const YAML::Node& card) {
  std::vector<CardConfig> configs;
  const YAML::Node listed = card.IsMap() ? card["configs"] : YAML::Node();
  if (!listed || !listed.IsSequence()) return configs;
  for (const YAML::Node& node : listed) {
    if (!node.IsMap() || !node["data_files"]) continue;
    CardConfig config;
    if (const YAML::Node name = node["config_name"]; name && name.IsScalar())
      config.name = name.Scalar();
    if (const YAML::Node chosen = node["default"]; chosen && chosen.IsScalar())
      config.is_default = chosen.Scalar() == "true";
    std::string folder;
    if (const YAML::Node inner = node["data_dir"]; inner && inner.IsScalar())
      folder = inner.Scalar() + "/";
    config.splits = splits_of(node["data_files"], folder);
    if (!config.splits.empty()) configs.push_back(std::move(config));
  }
  return configs;
}

}  // namespace

std::vector<CardConfig> read_dataset_card(const std::filesystem::path& folder) {
  const auto text = read_file(folder / "README.md", kCardBytesMax);
  if (!text) return {};
  try {  // yaml-cpp has no other way to say that a text is no YAML
    return configs_of(YAML::Load(std::string(front_matter(*text))));
  } catch (const YAML::Exception&) {
    return {};
  }
}

}  // namespace tandem::job
