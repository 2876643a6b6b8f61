#include <charconv>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "actors/cli/metrics_table.h"
#include "actors/cli/object_names.h"
#include "actors/cli/shared_options.h"
#include "actors/cli/verb.h"
#include "actors/data/write_parquet.h"
#include "actors/job/key_hints.h"

namespace tandem::cli {
namespace {

using nlohmann::json;

// A part of the run, both ends included; nullopt: to the run's own end.
struct Steps {
  std::optional<std::int64_t> first, last;
};

// "A:B", "A:", ":B", or one step.
Result<Steps> parse_steps(const std::string& text) {
  const auto number = [](std::string_view word) -> std::optional<std::int64_t> {
    std::int64_t value = 0;
    const auto [stop, failure] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (failure != std::errc{} || stop != word.data() + word.size()) return std::nullopt;
    return value;
  };
  const std::size_t colon = text.find(':');
  const std::string from = text.substr(0, colon);
  const std::string to = colon == std::string::npos ? from : text.substr(colon + 1);
  Steps steps{number(from), number(to)};
  const bool wrong = (!from.empty() && !steps.first) || (!to.empty() && !steps.last) ||
                     (from.empty() && to.empty()) ||
                     (steps.first && steps.last && *steps.first > *steps.last);
  if (wrong)
    return usage_error("`--steps " + text + "` is no range of steps",
                       "as in 100:200, 100: or :200");
  return steps;
}

struct Metrics {
  static VerbHelp help() {
    return {.name = "metrics",
            .group = VerbGroup::kLook,
            .description = "The figures of a run as a table, a row per step",
            .examples = {"tandem metrics arithmetic-grpo-1 -o csv",
                         "tandem metrics arithmetic-grpo --keys 'critic/*' --steps 100:200",
                         "tandem metrics ~/.tandem/runs/arithmetic-grpo-1 -o table"}};
  }

  void options(Options& options) {
    options.add("JOB", job, "A job, a run, or a run directory").required();
    options
        .add("--keys", keys,
             "Keys that match, where * stands for any characters; a list with commas, repeatable")
        .value("GLOB")
        .one_each();
    const auto take = [this](const std::string& text) -> Result<void> {
      const auto parsed = parse_steps(text);
      if (!parsed) return parsed.error();
      steps = *parsed;
      return {};
    };
    options.read("--steps", take, "Steps from A to B, both included; either may be left out")
        .value("A:B");
    using enum MetricsForm;
    options.one_of("-o,--output", output, {kCsv, kJsonl, kTable, kParquet},
                   "csv, jsonl and parquet: a row per step; table: a line per key");
  }

  Result<int> run(const VerbContext& context) {
    const auto call = [this](Client& client) { return carry_out(client); };
    // A run directory, which may lie anywhere, needs no controller.
    const std::filesystem::path directory = std::filesystem::absolute(job);
    std::error_code ignored;
    if (!context.offline || !std::filesystem::exists(directory / "metrics.jsonl", ignored))
      return with_api(context, AnsweredBy::kRunsAsWell, call);
    job = directory.lexically_normal().string();
    return with_offline_api(context, call);
  }

  Result<void> carry_out(Client& client) const;
  // Reads all lines behind `path`, of the steps that are meant, into the table.
  Result<void> read(Client& client, const std::string& path, MetricsTable& table) const;

  std::string job;  // a job, a run, or the absolute path of a run directory
  std::vector<std::string> keys;
  Steps steps;
  MetricsForm output = MetricsForm::kCsv;
};

Result<void> write_parquet(const MetricsTable& table, const Console& console) {
  std::ostringstream csv;
  table.print(MetricsForm::kCsv, {}, csv);
  return data::write_parquet(std::move(csv).str(), table.columns(), data::find_parquet_programs(),
                             console.out);
}

// Reads a page of lines into the table. Returns `next`, with which the page behind it begins; empty
// behind the last one.
Result<std::string> read_page(Client& client, const std::string& path, MetricsTable& table) {
  const auto page = client.api.get(path);
  if (!page) return page.error();
  if (!page->is_object() || !page->contains("lines"))
    return Error{ErrorCode::kFailed, "the controller's answer has no lines of metrics", path,
                 "is it of another version?"};
  for (const json& line : (*page)["lines"])
    if (const auto added = table.add(line); !added) return added.error();
  const json next = page->value("next", json());
  return next.is_string() ? next.get<std::string>() : std::string();
}

// The keys that may be meant by a glob which chooses none: those that have its words, else the
// nearest one. "" where there are none.
std::string near_keys(const std::string& glob, const std::vector<std::string>& all) {
  constexpr std::size_t kShown = 4;
  std::string word = glob;
  std::erase_if(word, [](char c) { return c == '*' || c == '?'; });
  std::vector<std::string_view> found;
  for (const std::string& key : all)
    if (!word.empty() && key.find(word) != key.npos && found.size() < kShown) found.push_back(key);
  const std::vector<std::string_view> names(all.begin(), all.end());
  if (found.empty())
    if (const auto near = job::nearest(word, names)) found.push_back(*near);
  std::string text;
  for (const std::string_view key : found)
    text += (text.empty() ? "`" : ", `") + std::string(key) + "`";
  return text;
}

// Whether a line of the run, of any step, has a figure that `path` asks for.
Result<bool> has_figures(Client& client, const std::string& path) {
  for (std::string after; true;) {
    MetricsTable page;
    const auto next =
        read_page(client, path + (after.empty() ? "" : "&after=" + url_escape(after)), page);
    if (!next) return next.error();
    if (page.columns().size() > 1) return true;
    if (next->empty()) return false;
    after = *next;
  }
}

// Nothing of the run has such a key. The names of its first lines are those that may be meant.
Result<void> no_such_keys(Client& client, const std::string& path,
                          const std::vector<std::string>& globs, const std::string& job) {
  MetricsTable first;
  if (const auto read = read_page(client, path, first); !read) return read.error();
  if (first.columns().size() == 1) return {};  // it has no figures yet
  std::string asked, near;
  for (const std::string& glob : globs) {
    asked += (asked.empty() ? "`" : ", `") + glob + "`";
    if (const std::string one = near_keys(glob, first.columns()); !one.empty())
      near += (near.empty() ? "" : ", ") + one;
  }
  return Error{ErrorCode::kNotFound, "no figure of the run matches " + asked, "",
               near.empty() ? "`tandem metrics " + job + " -o table` lists all of them"
                            : "did you mean " + near + "?"};
}

Result<void> Metrics::carry_out(Client& client) const {
  if (output == MetricsForm::kParquet && client.console.terminal)
    return Error{ErrorCode::kInvalid, "parquet is no text, and the output is a terminal", "",
                 "write it to a file: tandem metrics " + job + " -o parquet > metrics.parquet"};
  // An absolute path is a run directory, which an answer from files takes as it is.
  const bool directory = job.starts_with('/');
  auto id = directory ? Result<std::string>(job) : find_job(client, job, PastRuns::kIncluded);
  if (!id) return id.error();
  std::string globs;
  for (const std::string& key : keys) globs += (globs.empty() ? "" : ",") + key;
  const std::string path = "/jobs/" + url_escape(*id) + "/metrics?keys=";
  MetricsTable table;
  if (const auto done = read(client, path + url_escape(globs), table); !done) return done;
  const bool part = steps.first || steps.last;
  bool nothing = table.rows() == 0;
  if (table.columns().size() == 1 && !globs.empty() && globs != "step") {
    // The keys may exist in other steps alone.
    const auto elsewhere =
        part ? has_figures(client, path + url_escape(globs)) : Result<bool>(false);
    if (!elsewhere) return elsewhere.error();
    if (!*elsewhere)
      if (const auto some = no_such_keys(client, path, keys, job); !some) return some;
    nothing = true;
  }
  if (nothing)
    client.console.err << "note: the run has no such figures "
                       << (part ? "in these steps\n" : "yet\n");
  if (output == MetricsForm::kParquet) return write_parquet(table, client.console);
  table.print(output, screen_of(client), client.console.out);
  return {};
}

Result<void> Metrics::read(Client& client, const std::string& path, MetricsTable& table) const {
  std::string part = path;
  if (steps.first) part += "&from=" + std::to_string(*steps.first);
  if (steps.last) part += "&to=" + std::to_string(*steps.last);
  for (std::string after; true;) {
    const auto next =
        read_page(client, part + (after.empty() ? "" : "&after=" + url_escape(after)), table);
    if (!next) return next.error();
    if (next->empty()) return {};
    after = *next;
  }
}

}  // namespace

Verb metrics_verb() { return make_verb<Metrics>(); }

}  // namespace tandem::cli
