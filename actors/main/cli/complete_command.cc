// The deadline is for the whole command: finding the controller and up to four lists. Each request
// gets the time that is left. No error is ever reported, since the shell would show it within the
// user's line.
#include "actors/main/cli/complete_command.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <system_error>

#include "actors/main/cli/api_object.h"
#include "actors/main/cli/object_names.h"
#include "actors/main/job/job_table.h"

namespace tandem::app {
namespace {

using nlohmann::json;
using Words = std::vector<std::string>;

constexpr std::size_t kWordsMax = 10'000;  // from directories; a shell shows far fewer

class Lookup {
 public:
  explicit Lookup(const std::optional<std::string>& address)
      : end_(steady_now() + kCompletionDeadline) {
    if (auto found = resolve_address(address)) address_ = std::move(*found);
  }

  // Appends `prefix` and the member `id` of each item that the API lists, with `live` of those that
  // have not ended; nothing where it does not answer in the time that is left. Without a controller
  // runs are known by their directories.
  void append(const std::string& kind, const char* id, const std::string& prefix, Words& words,
              bool live = false) {
    if (!address_ && kind == "runs") return append_directories(prefix, words);
    const Duration left = end_ - steady_now();
    if (!address_ || left <= Duration::zero()) return;
    const auto items = ApiClient(*address_, left).get("/" + kind);
    if (!items || !items->is_array()) return;
    for (const json& item : *items)
      if (const std::string name = field(item, id); !name.empty() && !(live && has_ended(item)))
        words.push_back(prefix + name);
  }

 private:
  static void append_directories(const std::string& prefix, Words& words) {
    std::error_code failure;
    for (std::filesystem::directory_iterator run(tandem_home() / "runs", failure), end;
         !failure && run != end && words.size() < kWordsMax; run.increment(failure))
      if (const std::string name = run->path().filename(); !name.starts_with('.'))
        words.push_back(prefix + name);
  }

  const Time end_;
  std::optional<ApiAddress> address_;
};

Words keys_of_the_job_file(const char* suffix) {
  Words words;
  for (const Key& key : job_keys()) words.push_back(std::string(key.path) + suffix);
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
    for (const Section& section : job_sections()) words.emplace_back(section.path);
    return words;
  }
  Lookup lookup(address);
  if (names == "live") lookup.append("jobs", "id", "", words, true);
  if (names == "records")
    for (const char* const kind : {"jobs", "runs"}) lookup.append(kind, "id", "", words);
  for (const std::string kind : {"jobs", "runs", "actors", "nodes"}) {
    const char* id = kind == "jobs" || kind == "runs" ? "id" : "name";
    const bool is_target = names == "targets" && (kind == "jobs" || kind == "actors");
    if (names == kind || is_target) lookup.append(kind, id, "", words);
    if (names == kind + "/" || names == "objects") lookup.append(kind, id, kind + "/", words);
  }
  std::erase_if(words, [](const std::string& word) { return !is_safe(word); });
  std::ranges::sort(words);
  words.erase(std::ranges::unique(words).begin(), words.end());
  return words;
}

}  // namespace tandem::app
