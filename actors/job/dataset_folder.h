// Which files of a folder are a split of a data set, by the rules of the package datasets: what the
// README.md says (dataset_card.h), else the names of files and folders: a word `train`,
// `validation` or `test`, or another word for these, between characters that are no letters.
// Without such a word anywhere all files are the split train.
//
// Where the package takes everything that fits, Tandem asks: several groups of files for one split,
// a validation split and a test split, several configs, or two formats are an error that lists what
// is there. A shard `train-00003-of-00005` that is missing is an error as well.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "actors/job/data_split.h"
#include "runtime/base/result.h"

namespace tandem::job {

// In the order of their names. kFailed where the folder has no such split, or leaves a choice.
Result<std::vector<std::filesystem::path>> files_of_folder(const std::filesystem::path& folder,
                                                           Split wanted);

// The split that a word within `name` means: "train", "validation" or "test"; of several words the
// first one counts.
std::optional<std::string_view> split_in(std::string_view name);

}  // namespace tandem::job
