// Text from the rows of the job table alone, in two layouts: indented lines for a terminal and
// Markdown tables for docs/job-file.md. A key that has values for later versions shows them, since
// the parser refuses these by name (yaml_value.cc).
#include "actors/job/explain.h"

#include <algorithm>

#include "actors/job/job_table.h"
#include "actors/job/key_hints.h"
#include "actors/job/key_texts.h"

namespace tandem::job {
namespace {

// The values that this version refuses by name: "vllm, sglang", "more than 1", or "".
std::string later_text(const Key& key) {
  if (!key.later_values.empty()) return join(key.later_values);
  if (key.later_above) return "more than " + std::to_string(static_cast<long>(*key.later_above));
  return "";
}

std::string explain_key(const Key& key) {
  std::string text = std::string(key.path) + ": " + type_text(key) + "\n";
  const auto line = [&](const char* label, const std::string& value) {
    if (!value.empty()) text += "  " + std::string(label) + value + "\n";
  };
  line("default  ", default_text(key));
  line("range    ", range_text(key));
  line("later    ", later_text(key));
  line("also     ", join(key.aliases));
  return text + "\n" + std::string(key.description) + "\n";
}

std::string key_line(const Key& key) {
  std::string text = "  " + std::string(key.path);
  // Defaults stand in column 44, or two spaces behind a longer path.
  text.resize(std::max<std::size_t>(text.size() + 2, 44), ' ');
  return text + default_text(key) + "\n";
}

std::string explain_section(std::string_view path) {
  std::string text;
  for (const Section& section : job_sections())
    if (section.path == path)
      text += std::string(path) + ": " + std::string(section.description) + "\n";
  if (path.empty()) text += "The keys of a job file and their defaults:\n";
  for (const Key& key : job_keys())
    // The dot belongs to the prefix, so that `learner` does not list a key of a section such as
    // `learner_x`.
    if (path.empty() || key.path.starts_with(std::string(path) + ".")) text += key_line(key);
  return text + "\n`tandem explain KEY` says what a key means.\n";
}

// A `|` would end the cell of a Markdown table.
std::string cell(std::string_view text) {
  std::string escaped;
  for (const char c : text) escaped += c == '|' ? "\\|" : std::string(1, c);
  return escaped;
}

std::string markdown_row(const Key& key) {
  std::string meaning(key.description);
  if (!key.aliases.empty()) meaning += " Also: " + join(key.aliases) + ".";
  if (const std::string later = later_text(key); !later.empty())
    meaning += " Not in this version: " + later + ".";
  std::string fallback = default_text(key);
  if (key.presence == Presence::kDefaulted) fallback = "`" + fallback + "`";
  return "| `" + std::string(key.path) + "` | " + cell(type_text(key)) + " | " + cell(fallback) +
         " | " + cell(range_text(key)) + " | " + cell(meaning) + " |\n";
}

constexpr const char* kHeader =
    "| key | type | default | range | meaning |\n|---|---|---|---|---|\n";

constexpr const char* kIntroduction = R"(# The job file

A job is one YAML document. This page is printed by `tandem explain --markdown`; `tandem explain KEY`
shows one entry of it, and `tandem run JOB.yaml --dry-run` the effective job with every default.

- Names that are not on this page are errors, with the nearest valid name; so are values of another
  type or out of range. An error points at `file:line:column`, or at the `--set` that brought the value.
- Relative paths start at the job file's folder; in `--set` at the caller's. `~`, `$HOME` or
  `${HOME}` at a path's beginning is the home folder.
- `--set a.b=VALUE` replaces one key after the file is read; VALUE is YAML, lists in brackets
  included, and the last one wins. `--set warm_start=null` leaves the section out.
- A string that looks like a number needs quotes, and a number must not have any.
- A list of one string or path may be written without brackets, but for `command`.
)";

}  // namespace

Result<std::string> explain(std::string_view name) {
  if (name.empty()) return explain_section("");
  const std::string path = table_path(name).path;
  if (const Key* key = find_key(path)) return explain_key(*key);
  if (find_section(path)) return explain_section(path);
  return Error{ErrorCode::kNotFound, "no key `" + std::string(name) + "` in a job file", "",
               unknown_key_help(name)};
}

std::string job_file_reference() {
  std::string text = kIntroduction;
  text += "\n## Top level\n\n" + std::string(kHeader);
  for (const Key& key : job_keys())
    if (section_of(key.path).empty()) text += markdown_row(key);
  for (const Section& section : job_sections()) {
    text += "\n## " + std::string(section.path) + "\n\n" + std::string(section.description) + "\n";
    std::string rows;
    for (const Key& key : job_keys())
      if (section_of(key.path) == section.path) rows += markdown_row(key);
    if (!rows.empty()) text += "\n" + std::string(kHeader) + rows;
  }
  return text;
}

}  // namespace tandem::job
