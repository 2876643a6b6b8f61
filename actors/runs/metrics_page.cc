#include "actors/runs/metrics_page.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>

#include "runtime/base/json.h"
#include "runtime/base/line_file.h"

namespace tandem::runs {

using nlohmann::json;

namespace {

// A mark as a word of a query: five numbers with dots between them.
std::string text_of(const LineMark& mark) {
  const auto number = [](std::uint64_t value) { return std::to_string(value) + "."; };
  return number(mark.inode) + number(mark.offset) + number(mark.head) + number(mark.tail) +
         (mark.inside_long_line ? "1" : "0");
}

std::optional<LineMark> mark_of(std::string_view text) {
  std::array<std::uint64_t, 5> numbers{};
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto [stop, failure] =
        std::from_chars(text.data(), text.data() + text.size(), numbers[i]);
    if (failure != std::errc{}) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
    if (i + 1 == numbers.size()) break;
    if (!text.starts_with('.')) return std::nullopt;
    text.remove_prefix(1);
  }
  if (!text.empty() || numbers[4] > 1) return std::nullopt;
  return LineMark{numbers[0], numbers[1], numbers[2], numbers[3], numbers[4] == 1};
}

// Chooses lines by their step, and their members by the globs. A key is matched once, and its
// answer is kept.
class Choice {
 public:
  explicit Choice(const MetricsPageQuery& query) : query_(query) {}

  // The part of the line that is asked for; null where there is none.
  json of(std::string_view text) {
    json line = parse_json(text);
    if (!line.is_object()) return nullptr;
    const auto step = line.find("step");
    if (step == line.end() || !step->is_number_integer()) return nullptr;
    const auto number = step->get<std::int64_t>();
    if (number < query_.steps.first || number > query_.steps.last) return nullptr;
    if (query_.globs.empty()) return line;
    for (auto member = line.begin(); member != line.end();)
      member = wanted(member.key()) ? std::next(member) : line.erase(member);
    return line;
  }

 private:
  bool wanted(const std::string& key) {
    if (key == "step" || key == "eval") return true;
    const auto known = keys_.find(key);
    if (known != keys_.end()) return known->second;
    const bool matches = std::ranges::any_of(
        query_.globs, [&key](const std::string& glob) { return glob_matches(glob, key); });
    if (keys_.size() < kMetricKeysMax) keys_.emplace(key, matches);
    return matches;
  }

  const MetricsPageQuery& query_;
  std::map<std::string, bool> keys_;
};

}  // namespace

Result<json> metrics_page(const std::filesystem::path& run_dir, const MetricsPageQuery& query) {
  const auto path = run_dir / "metrics.jsonl";
  LineMark from;
  if (!query.after.empty()) {
    const auto mark = mark_of(query.after);
    if (!mark)
      return Error{ErrorCode::kInvalid, "after= is no `next` of a page before", "",
                   "begin without it"};
    from = *mark;
  }
  json page{{"lines", json::array()}, {"next", nullptr}};
  auto file = LineFile::open(path);
  if (!file && file.error().code == ErrorCode::kNotFound && query.after.empty()) return page;
  if (!file) return file.error();
  if (!query.after.empty() && !file->continues(from))
    return Error{ErrorCode::kFailed, "the file was replaced while it was read", path.string(),
                 "read it again from its start"};
  Choice choice(query);
  const auto read =
      file->read_lines(from, kMetricsPageBytes, [&](std::uint64_t, std::string_view text) {
        if (json line = choice.of(text); line.is_object()) page["lines"].push_back(std::move(line));
      });
  if (!read) return read.error();
  // An unfinished last line is no reason for another page.
  if (read->offset > from.offset && read->offset < file->size()) page["next"] = text_of(*read);
  return page;
}

// On a mismatch the last `*` takes one character more. Earlier ones need not be tried again: they
// have matched as early as they can.
bool glob_matches(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0;
  std::optional<std::size_t> star;  // the place behind the last `*` of the pattern
  std::size_t star_text = 0;        // where the text behind it begins
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = ++p;
      star_text = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star) {
      p = *star;
      t = ++star_text;
    } else {
      return false;
    }
  }
  return pattern.substr(p).find_first_not_of('*') == std::string_view::npos;
}

}  // namespace tandem::runs
