// What the README.md of a data set says about its files: the section `configs` of the YAML at its
// start, as the Hugging Face Hub and the package datasets have it. A README is somebody else's
// text: what has another form than those known is as if it were not there.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tandem::job {

inline constexpr std::size_t kCardBytesMax = 1 << 20;

struct CardSplit {
  std::string split;                  // "train"
  std::vector<std::string> patterns;  // relative to the folder of the README
};
struct CardConfig {
  std::string name = "default";
  bool is_default = false;
  std::vector<CardSplit> splits;
};

// Configs that name files; empty where the folder has no README.md, or this one names none.
std::vector<CardConfig> read_dataset_card(const std::filesystem::path& folder);

}  // namespace tandem::job
