// Files are put into groups: those that one pattern means, as the shards of one split. A group is
// shown, and told apart from others, by its path with a star in the place of each number.
#include "actors/job/dataset_folder.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "actors/job/dataset_card.h"
#include "actors/job/file_pattern.h"

namespace tandem::job {

namespace fs = std::filesystem;

namespace {

using Files = std::vector<fs::path>;
using Groups = std::map<std::string, Files>;  // shown name -> files, in order

constexpr std::array<std::string_view, 6> kExtensions{".parquet", ".jsonl", ".ndjson",
                                                      ".json",    ".csv",   ".tsv"};
// Files of a data set that hold none of its records, as in the package datasets.
constexpr std::array<std::string_view, 5> kNoData{
    "config.json", "dataset_info.json", "dataset_infos.json", "dataset_dict.json", "state.json"};
constexpr std::size_t kShownMax = 12;  // groups that an error lists

struct Word {
  std::string_view word, split;
};
constexpr Word kWords[] = {
    {"train", "train"},      {"training", "train"}, {"validation", "validation"},
    {"valid", "validation"}, {"dev", "validation"}, {"val", "validation"},
    {"test", "test"},        {"testing", "test"},   {"eval", "test"},
    {"evaluation", "test"},
};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

fs::path unpacked_name(const fs::path& path) {
  const fs::path extension = path.extension();
  return extension == ".gz" || extension == ".zst" ? path.stem() : path.filename();
}

bool holds_records(const fs::path& path) {
  const std::string name = path.filename();
  const std::string extension = unpacked_name(path).extension();
  return !name.starts_with('.') && !name.starts_with('_') &&
         std::ranges::count(kNoData, name) == 0 && std::ranges::count(kExtensions, extension) > 0;
}

// "data/train-*-of-*.parquet" of "data/train-00000-of-00002.parquet". The 16 hexadecimal digits
// that older versions of datasets put at the end of a name count as one number.
std::string shown(const fs::path& relative) {
  const std::string name = relative.filename();
  std::string text;
  for (std::size_t i = 0; i < name.size();) {
    const std::size_t end = std::min(name.find_first_not_of("0123456789abcdef", i), name.size());
    const std::size_t digits = std::min(name.find_first_not_of("0123456789", i), name.size());
    const bool digest = end - i == 16 && i > 0 && name[i - 1] == '-';
    if (digest || digits > i) {
      text += '*';
      i = digest ? end : digits;
    } else {
      text += name[i++];
    }
  }
  return (relative.parent_path() / text).string();
}

std::string list_of(const Groups& groups) {
  std::string text;
  std::size_t listed = 0;
  for (const auto& [name, files] : groups) {
    if (listed++ == kShownMax)
      return text + " and " + std::to_string(groups.size() - kShownMax) + " more";
    text += text.empty() ? "" : ", ";
    text += files.size() == 1 ? files.front().string()
                              : name + " (" + std::to_string(files.size()) + " files)";
  }
  return text;
}

Error choice(const fs::path& folder, const std::string& message, const Groups& groups) {
  const std::string example = groups.empty() ? "train.jsonl" : groups.begin()->first;
  return {ErrorCode::kFailed, message + (groups.empty() ? "" : ": " + list_of(groups)),
          folder.string(), "name the files that are meant, as in " + (folder / example).string()};
}

Groups groups_of(const Files& relative) {
  Groups groups;
  for (const fs::path& file : relative) groups[shown(file)].push_back(file);
  return groups;
}

// The number behind `at`, which must be five digits or more, as datasets writes shards.
std::optional<std::size_t> shard_number(std::string_view name, std::size_t at) {
  std::size_t number = 0;
  const auto read = std::from_chars(name.data() + at, name.data() + name.size(), number);
  if (read.ec != std::errc() || read.ptr - (name.data() + at) < 5) return std::nullopt;
  return number;
}

// Shards of a download that was interrupted: the error names the first one that is not there.
Result<void> check_shards(const fs::path& folder, const Files& relative) {
  std::set<std::size_t> there;
  std::size_t wanted = 0;
  for (const fs::path& file : relative) {
    const std::string name = file.filename();
    const std::size_t of = name.find("-of-");
    if (of == name.npos || of < 6 || name[of - 6] != '-') return {};
    const auto number = shard_number(name, of - 5), count = shard_number(name, of + 4);
    if (!number || !count) return {};
    there.insert(*number);
    wanted = std::max(wanted, *count);
  }
  for (std::size_t i = 0; i < wanted && wanted <= kDataFilesMax; ++i)
    if (!there.contains(i))
      return Error{ErrorCode::kFailed,
                   "shard " + std::to_string(i) + " of " + std::to_string(wanted) +
                       " is missing beside " + relative.front().string(),
                   folder.string(), "finish the download, or name the files that are meant"};
  return {};
}

// One group, whole, as paths from the root.
Result<Files> the_one(const fs::path& folder, const std::string& split, const Files& relative) {
  const Groups groups = groups_of(relative);
  if (groups.size() > 1)
    return choice(folder, "the folder has several groups of files for `" + split + "`", groups);
  if (auto checked = check_shards(folder, relative); !checked) return checked.error();
  Files files;
  for (const fs::path& file : relative) files.push_back(folder / file);
  return files;
}

using Splits = std::map<std::string, Files, std::less<>>;

// The split that a key wants of those that a folder has.
Result<std::string> choose_split(const fs::path& folder, Split wanted, const Splits& splits,
                                 const Groups& all) {
  if (wanted == Split::kTrain) {
    if (splits.contains("train")) return std::string("train");
    return choice(folder, "the folder has no files of the split `train`", all);
  }
  const bool validation = splits.contains("validation"), test = splits.contains("test");
  if (validation && test)
    return choice(folder, "the folder has a validation split and a test split", all);
  if (!validation && !test)
    return choice(folder, "the folder has no files of a validation or test split", all);
  return std::string(validation ? "validation" : "test");
}

// By the words in their names; files without one are left out, unless none has one.
Splits splits_by_name(const Files& relative) {
  Splits splits;
  for (const fs::path& file : relative) {
    auto split = split_in(file.filename().native());
    for (fs::path at = file.parent_path(); !split && !at.empty(); at = at.parent_path())
      split = split_in(at.filename().native());
    if (split) splits[std::string(*split)].push_back(file);
  }
  if (splits.empty() && !relative.empty()) splits["train"] = relative;
  return splits;
}

// A command that writes what datasets.save_to_disk wrote as parquet. A DatasetDict, which has no
// to_parquet(), makes a file for each split; Arrow files alone, as in the package's cache, are read
// one by one.
Error arrow_files(const fs::path& folder, const Files& found) {
  const auto folder_of = [&found](std::string_view name) -> std::optional<fs::path> {
    const auto at = std::ranges::find(found, fs::path(name),
                                      [](const fs::path& file) { return file.filename(); });
    return at == found.end() ? std::nullopt : std::optional(at->parent_path());
  };
  const std::string begin = "write parquet: python3 -c \"import datasets; ";
  const auto error = [&folder](const std::string& what, const std::string& help) {
    return Error{ErrorCode::kFailed, what, folder.string(), help};
  };
  if (const auto splits = folder_of("dataset_dict.json"))
    return error(
        "the folder has a DatasetDict in Arrow files, as datasets.save_to_disk writes them",
        begin +
            "[part.to_parquet(name + '.parquet') for name, part in "
            "datasets.load_from_disk('" +
            splits->string() +
            "').items()]\", which makes a file for each split, train.parquet for `train`; "
            "then name the files");
  if (const auto one = folder_of("state.json"))
    return error("the folder has Arrow files, as datasets.save_to_disk writes them",
                 begin + "datasets.load_from_disk('" + one->string() +
                     "').to_parquet('train.parquet')\", then name that file");
  const auto first = std::ranges::find(found, fs::path(".arrow"), &fs::path::extension);
  return error("the folder has Arrow files",
               begin + "datasets.Dataset.from_file('" + first->string() +
                   "').to_parquet('train.parquet')\" for each file, then name those files");
}

Result<Files> by_name(const fs::path& folder, Split wanted) {
  auto found = files_matching(folder, "**/*");
  if (!found) return found.error();
  Files relative;
  bool arrow = false;
  for (const fs::path& file : *found) {
    arrow = arrow || file.extension() == ".arrow";
    if (holds_records(file)) relative.push_back(file.lexically_relative(folder));
  }
  if (relative.empty() && arrow) return arrow_files(folder, *found);
  if (relative.empty())
    return Error{ErrorCode::kFailed,
                 "the folder has no data files: .parquet, .jsonl, .json, .csv or .tsv",
                 folder.string(), "is the download finished?"};
  const Splits splits = splits_by_name(relative);
  const auto split = choose_split(folder, wanted, splits, groups_of(relative));
  if (!split) return split.error();
  return the_one(folder, *split, splits.find(*split)->second);
}

// The config that is used where nobody chooses one; null: there is a choice.
const CardConfig* default_config(const std::vector<CardConfig>& configs) {
  if (configs.size() == 1) return &configs.front();
  for (const CardConfig& config : configs)
    if (config.is_default) return &config;
  for (const CardConfig& config : configs)
    if (config.name == "default") return &config;
  return nullptr;
}

// Several splits may have one word in common, as train_sft and train_gen do. A split whose name is
// the word itself wins over those.
Splits splits_of_card(const CardConfig& config) {
  Splits splits;
  std::set<std::string_view> exact;
  for (const CardSplit& split : config.splits) {
    const auto word = split_in(split.split);
    if (!word) continue;
    Files& patterns = splits[std::string(*word)];
    if (*word == split.split && exact.insert(*word).second) patterns.clear();
    if (*word == split.split || !exact.contains(*word))
      patterns.insert(patterns.end(), split.patterns.begin(), split.patterns.end());
  }
  return splits;
}

// The patterns of all splits, as groups of one.
void add_patterns(const CardConfig& config, Groups& groups) {
  for (const CardSplit& split : config.splits)
    for (const std::string& pattern : split.patterns) groups[pattern].emplace_back(pattern);
}

bool stays_inside(const fs::path& pattern) {
  return pattern.is_relative() && std::ranges::count(pattern, fs::path("..")) == 0 &&
         pattern.native().find("://") == std::string::npos;
}

Result<Files> by_card(const fs::path& folder, Split wanted,
                      const std::vector<CardConfig>& configs) {
  Groups all;
  const CardConfig* config = default_config(configs);
  if (!config) {
    for (const CardConfig& one : configs) add_patterns(one, all);
    return choice(folder, "the README.md has " + std::to_string(configs.size()) + " configs", all);
  }
  add_patterns(*config, all);
  const Splits splits = splits_of_card(*config);
  const auto split = choose_split(folder, wanted, splits, all);
  if (!split) return split.error();
  std::set<fs::path> files;
  for (const fs::path& pattern : splits.find(*split)->second) {
    if (!stays_inside(pattern)) continue;
    auto found = files_matching(folder, pattern);
    if (!found) return found.error();
    if (found->empty())
      return Error{ErrorCode::kFailed,
                   "no file matches " + pattern.string() + ", which README.md names",
                   folder.string(), "is the download finished?"};
    for (const fs::path& file : *found)
      if (holds_records(file)) files.insert(file.lexically_relative(folder));
  }
  if (files.empty())
    return choice(folder, "README.md names no files in this folder for `" + *split + "`", all);
  return the_one(folder, *split, Files(files.begin(), files.end()));
}

}  // namespace

std::optional<std::string_view> split_in(std::string_view name) {
  for (std::size_t i = 0; i < name.size();) {
    std::size_t end = i;
    std::string word;
    while (end < name.size() && is_letter(name[end]))
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(name[end++])));
    for (const Word& known : kWords)
      if (word == known.word) return known.split;
    i = end + 1;
  }
  return std::nullopt;
}

Result<Files> files_of_folder(const fs::path& folder, Split wanted) {
  const std::vector<CardConfig> configs = read_dataset_card(folder);
  return configs.empty() ? by_name(folder, wanted) : by_card(folder, wanted, configs);
}

}  // namespace tandem::job
