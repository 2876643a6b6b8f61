// Short forms for progress lines and summaries show one pass@k, the greatest; the answer of `tandem
// eval` shows all.
#include "actors/cli/evaluation_view.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "actors/cli/cells.h"
#include "actors/cli/table.h"
#include "runtime/base/json.h"
#include "runtime/base/text.h"

namespace tandem::cli {
namespace {

using cells::at;
using cells::fixed;
using nlohmann::json;

// The k of "pass@k" or "maj@k".
int size_of(const std::string& name) { return std::atoi(name.c_str() + name.find('@') + 1); }

// The names of the figures that begin so, as "pass@", in the order of k, not of their text.
std::vector<std::string> names_of(const json& figures, std::string_view begin) {
  std::vector<std::string> names;
  if (!figures.is_object()) return names;
  for (const auto& [key, value] : figures.items())
    if (key.starts_with(begin) && value.is_number()) names.push_back(key);
  std::ranges::sort(names, {}, size_of);
  return names;
}

std::vector<std::string> pass_names(const json& figures) { return names_of(figures, "pass@"); }

// "pass@1 0.500  pass@2 0.600\n"; empty without any.
std::string line_of(const json& figures, const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names)
    text += (text.empty() ? "" : "  ") + name + " " + fixed(at(figures, {name.c_str()}));
  return text.empty() ? "" : text + "\n";
}

// The greatest pass@k and the greedy mean, each with `before` in front and `between` name and
// value.
std::string named_figures(const json& figures, const char* before, const char* between) {
  std::string text;
  const auto passes = pass_names(figures);
  if (!passes.empty())
    text += before + passes.back() + between + fixed(at(figures, {passes.back().c_str()}));
  if (const json& greedy = at(figures, {"greedy"}); greedy.is_number())
    text += std::string(before) + "greedy" + between + fixed(greedy);
  return text;
}

std::string short_number(const json& value) {
  std::array<char, 32> digits;
  std::snprintf(digits.data(), digits.size(), "%g", value.get<double>());
  return digits.data();
}

// One row per data set; columns for greedy and pass@k only where the evaluation has them.
std::string table_of_sources(const json& answer, int width) {
  const json& sources = at(answer, {"sources"});
  if (!sources.is_object() || sources.empty()) return "";
  const auto passes = pass_names(answer);
  const bool greedy = at(answer, {"greedy"}).is_number();
  std::vector<Column> columns{{"SOURCE", Align::kLeft, 8}, {"MEAN", Align::kRight, 5}};
  if (greedy) columns.push_back({"GREEDY", Align::kRight, 6});
  for (const std::string& pass : passes)
    columns.push_back({"PASS" + pass.substr(4), Align::kRight, 6});
  columns.push_back({"SCORED", Align::kRight, 6});
  columns.push_back({"FAILED", Align::kRight, 6});
  std::vector<Row> rows;
  for (const auto& [name, source] : sources.items()) {
    Row row{name, fixed(at(source, {"mean"}))};
    if (greedy) row.push_back(fixed(at(source, {"greedy"})));
    for (const std::string& pass : passes) row.push_back(fixed(at(source, {pass.c_str()})));
    row.push_back(cells::text(at(source, {"scored"})));
    row.push_back(cells::text(at(source, {"failed"})));
    rows.push_back(std::move(row));
  }
  return render_table(columns, rows, width);
}

}  // namespace

std::string left_out(const json& scored, const json& failed) {
  if (!failed.is_number() || failed.get<double>() == 0) return "";
  const auto count = [](const json& value) {
    return value.is_number() ? value.get<std::int64_t>() : std::int64_t{0};
  };
  const std::string failures = ", " + std::to_string(count(failed)) + " failed";
  // A run that did not count its completions has no total.
  if (count(scored) == 0) return failures;
  return " over " + std::to_string(count(scored)) + " of " +
         std::to_string(count(scored) + count(failed)) + failures;
}

std::string evaluation_beside(const json& figures) { return named_figures(figures, "  ", " "); }
std::string evaluation_in_brackets(const json& figures) {
  const std::string named = named_figures(figures, ", ", " ");
  return named.empty() ? "" : " (" + named.substr(2) + ")";
}

std::string evaluation_pairs(const json& figures) { return named_figures(figures, " eval_", "="); }

std::string means_of_sources(const json& figures) {
  const json& sources = at(figures, {"sources"});
  std::string text;
  if (!sources.is_object()) return text;
  for (const auto& [name, source] : sources.items())
    text += (text.empty() ? "" : ", ") + name + " " + fixed(at(source, {"mean"})) +
            left_out(at(source, {"scored"}), at(source, {"failed"}));
  return text;
}

std::string render_evaluation(const json& answer, int width) {
  if (!at(answer, {"mean"}).is_number()) return "";
  const auto count = [&](const char* name) { return at(answer, {name}).get<std::int64_t>(); };
  const std::int64_t scored = count("scored"), failed = count("failed"), prompts = count("prompts");
  // With several completions of a prompt the counts are of completions.
  const bool one_each = scored + failed == prompts;
  std::string text = "mean reward " + short_number(at(answer, {"mean"})) + " over " +
                     std::to_string(scored) + " of " + std::to_string(scored + failed) +
                     (one_each ? "" : " completions of " + std::to_string(prompts)) + " prompts, " +
                     std::to_string(failed) + " failed";
  if (const json& why = at(answer, {"failure"}); failed > 0 && why.is_string())
    text += ", the first: " + why.get<std::string>();
  text = visible(text, Lines::kOne) + "\n";
  if (const json& error = at(answer, {"stderr"}); error.is_number())
    text += "standard error " + short_number(error) + "\n";
  if (const json& mean = at(answer, {"mean_with_failures"}); mean.is_number())
    text += "mean reward " + short_number(mean) + " with " +
            short_number(at(answer, {"failure_reward"})) + " for each failure\n";
  if (const json& greedy = at(answer, {"greedy"}); greedy.is_number())
    text += "greedy " + fixed(greedy) + "\n";
  if (const json& extra = at(answer, {"extra"}); extra.is_object()) {
    std::vector<std::string> names;
    for (const auto& [name, mean] : extra.items()) names.push_back(name);
    text += "extra: " + line_of(extra, names);
  }
  text += line_of(answer, pass_names(answer)) + line_of(answer, names_of(answer, "maj@"));
  const std::string table = table_of_sources(answer, width);
  return text + (table.empty() ? "" : "\n" + table);
}

}  // namespace tandem::cli
