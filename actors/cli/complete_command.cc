// The deadline is for the whole command: finding the controller and up to four lists. Each request
// gets the time that is left, and each list is asked for once. No error is ever reported, since the
// shell would show it within the user's line.
#include "actors/cli/complete_command.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <system_error>

#include "actors/cli/api_object.h"
#include "actors/cli/object_names.h"
#include "actors/job/job_table.h"
#include "actors/job/resume.h"
#include "runtime/node/log_files.h"

namespace tandem::cli {
namespace {

namespace fs = std::filesystem;

using nlohmann::json;
using Words = std::vector<std::string>;

constexpr std::size_t kWordsMax = 10'000;  // from directories; a shell shows far fewer

std::vector<fs::path> run_directories() {
  std::vector<fs::path> runs;
  std::error_code failure;
  for (fs::directory_iterator run(tandem_home() / "runs", failure), end;
       !failure && run != end && runs.size() < kWordsMax; run.increment(failure))
    if (!run->path().filename().string().starts_with('.')) runs.push_back(run->path());
  return runs;
}

class Lookup {
 public:
  explicit Lookup(const std::optional<std::string>& address)
      : end_(steady_now() + kCompletionDeadline) {
    if (auto found = resolve_address(address)) address_ = std::move(*found);
  }

  // Appends the names of one list (parts_of()), each behind `prefix`.
  void append(const std::string& list, const std::string& prefix, Words& words) {
    if (list == "recorded") return append_recorded(prefix, words);
    const bool live = list == "live";
    const char* const id = list == "actors" || list == "nodes" ? "name" : "id";
    for (const json& item : items(live ? "jobs" : list))
      if (const std::string name = field(item, id); !name.empty() && !(live && has_ended(item)))
        words.push_back(prefix + name);
  }

 private:
  // The items that the API lists; none where it does not answer in the time that is left. Without a
  // controller runs are known by their directories.
  const json& items(const std::string& kind) {
    const auto [list, is_new] = lists_.emplace(kind, json::array());
    if (!is_new) return list->second;
    const Duration left = end_ - steady_now();
    if (!address_ && kind == "runs") {
      for (const fs::path& run : run_directories())
        list->second.push_back({{"id", run.filename()}, {"run_dir", run}});
    } else if (address_ && left > Duration::zero()) {
      auto answer = ApiClient(*address_, left).get("/" + kind);
      if (answer && answer->is_array()) list->second = std::move(*answer);
    }
    return list->second;
  }

  // The actors that have logs in the directories of runs, where these are on this host.
  void append_recorded(const std::string& prefix, Words& words) {
    for (const json& run : items("runs")) {
      if (words.size() >= kWordsMax || steady_now() >= end_) return;
      for (const node::ActorLogs& logs : node::logs_in(field(run, "run_dir") + "/logs"))
        words.push_back(prefix + field(run, "id") + "/" + logs.actor);
    }
  }

  const Time end_;
  std::optional<ApiAddress> address_;
  std::map<std::string, json> lists_;
};

// The best and the newest checkpoint of each run of this host.
Words checkpoints() {
  Words words;
  std::error_code ignored;
  for (const fs::path& run : run_directories()) {
    const fs::path folder = run / "checkpoints";
    if (fs::exists(folder / "best", ignored)) words.push_back(folder / "best");
    if (const auto step = job::newest_checkpoint(run))
      words.push_back(folder / ("step-" + std::to_string(*step)));
  }
  return words;
}

// The lists of names that NAMES stands for.
Words parts_of(const std::string& names) {
  static const std::map<std::string, Words> kParts = {
      {"records", {"jobs", "runs"}},
      {"targets", {"jobs", "runs", "actors"}},
      {"logs", {"jobs", "runs", "actors", "recorded"}},
      {"known_actors", {"actors", "recorded"}},
  };
  static constexpr std::string_view kLists[] = {"jobs", "live", "runs", "actors", "nodes"};
  if (const auto parts = kParts.find(names); parts != kParts.end()) return parts->second;
  return std::ranges::find(kLists, names) == std::end(kLists) ? Words{} : Words{names};
}

Words keys_of_the_job_file(const char* suffix) {
  Words words;
  for (const job::Key& key : job::job_keys()) words.push_back(std::string(key.path) + suffix);
  return words;
}

bool is_safe(const std::string& word) {
  return std::ranges::all_of(word, [](unsigned char c) {
    return c < 0x80 &&
           (std::isalnum(c) || std::string_view("-_./=:").find(c) != std::string_view::npos);
  });
}

}  // namespace

Words completion_words(const std::string& names, const std::optional<std::string>& address) {
  Words words;
  if (names == "sets") return keys_of_the_job_file("=");
  if (names == "keys") {
    words = keys_of_the_job_file("");
    for (const job::Section& section : job::job_sections()) words.emplace_back(section.path);
    return words;
  }
  if (names == "models") words = checkpoints();
  Lookup lookup(address);
  for (const std::string& list : parts_of(names)) lookup.append(list, "", words);
  for (const std::string kind : {"jobs", "runs", "actors", "nodes"})
    if (names == kind + "/" || names == "objects")
      for (const std::string& list : parts_of(kind == "actors" ? "known_actors" : kind))
        lookup.append(list, kind + "/", words);
  std::erase_if(words, [](const std::string& word) { return !is_safe(word); });
  std::ranges::sort(words);
  words.erase(std::ranges::unique(words).begin(), words.end());
  return words;
}

}  // namespace tandem::cli
