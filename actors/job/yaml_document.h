// The text of a YAML document to a tree of nodes. A document is input that nobody has checked: its
// length and its nesting are bounded before yaml-cpp builds anything, since that library parses,
// copies and destroys nodes by recursion. It reports by exceptions, which end here. Pure.
#pragma once

#include <yaml-cpp/yaml.h>

#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace tandem::job {

inline constexpr std::size_t kYamlBytesMax = 1 << 20;

// How errors name the text.
struct YamlText {
  std::string name;                   // "job.yaml", or "--set rollout.n=8"
  bool has_lines = true;              // false: errors name the text without line and column
  std::string noun = "the job file";  // begins a sentence: "… is not UTF-8 text"
  std::string too_long_help = "data belongs in the files that it names";
};

// "job.yaml:3:5" of the line and the column, both from 0; the name alone where the text has no
// lines, or where the line is not known (below 0).
std::string yaml_place(const YamlText& text, int line, int column);

// The root of the one document that `text` holds; a null node where it is empty. Errors are
// kInvalid, with place and help: no UTF-8, a tab in the indentation, more than kYamlBytesMax
// bytes, nested more than kNestingMax deep, no YAML, more than one document.
Result<YAML::Node> parse_yaml(std::string_view text, const YamlText& what);

}  // namespace tandem::job
