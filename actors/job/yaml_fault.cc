// A guess from the text alone. If the parser's message is about a flow collection, the fault is the
// last bracket that is open, or that a bracket of the other kind closes. Otherwise the line before
// is looked at, since the parser fails at the first line that no longer fits: a line before without
// `key: value` is the fault; then a line whose indentation no open section has. If nothing is
// found, the place of the parser stays.
#include "actors/job/yaml_fault.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace tandem::job {
namespace {

constexpr std::size_t kLineBytesMax = 120;  // the most that is shown of a line

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

int indentation(std::string_view line) {
  return static_cast<int>(std::min(line.find_first_not_of(' '), line.size()));
}

bool has_content(std::string_view line) {
  const std::size_t first = line.find_first_not_of(" \r");
  return first != std::string_view::npos && line[first] != '#';
}

// Whether a line can stand on its own in a job file: "key: value", "key:" or "- item".
bool is_entry(std::string_view line) {
  const std::string_view content = line.substr(static_cast<std::size_t>(indentation(line)));
  return content.starts_with('-') || content.find(": ") != std::string_view::npos ||
         content.find_last_not_of(" \r") == content.rfind(':');
}

std::optional<int> line_before(const std::vector<std::string_view>& lines, int line) {
  for (int above = line - 1; above >= 0; --above)
    if (has_content(lines[static_cast<std::size_t>(above)])) return above;
  return std::nullopt;
}

// The bracket that is still open at the end of `line`, or that a bracket of the other kind closes.
// Brackets within quotes and comments do not count.
std::optional<YamlFault> open_bracket(const std::vector<std::string_view>& lines, int line) {
  std::vector<YamlFault> open;
  for (int at = 0; at <= line && at < static_cast<int>(lines.size()); ++at) {
    char quote = 0;
    const std::string_view text = lines[static_cast<std::size_t>(at)];
    for (std::size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      if (quote != 0) {
        if (c == quote) quote = 0;
      } else if (c == '"' || c == '\'') {
        quote = c;
      } else if (c == '#' && (i == 0 || text[i - 1] == ' ')) {
        break;
      } else if (c == '[' || c == '{') {
        open.push_back({at, static_cast<int>(i), "this bracket is not closed",
                        std::string("close it with `") + (c == '[' ? "]" : "}") + "`"});
      } else if ((c == ']' || c == '}') && !open.empty()) {
        // The help of the open bracket names its counterpart. Another one here shows that it is
        // missing.
        if (!open.back().help.ends_with(std::string{c, '`'})) return open.back();
        open.pop_back();
      }
    }
  }
  if (open.empty()) return std::nullopt;
  return open.back();
}

// The indentations of the sections that are open above `line`, outermost first.
std::vector<int> open_levels(const std::vector<std::string_view>& lines, int line) {
  std::vector<int> levels;
  for (int at = 0; at < line; ++at) {
    const std::string_view text = lines[static_cast<std::size_t>(at)];
    if (!has_content(text)) continue;
    while (!levels.empty() && levels.back() > indentation(text)) levels.pop_back();
    if (levels.empty() || levels.back() < indentation(text)) levels.push_back(indentation(text));
  }
  return levels;
}

bool opens_section(std::string_view line) {
  const std::size_t last = line.find_last_not_of(" \r");
  return last != std::string_view::npos && line[last] == ':';
}

// A line of the file as it is shown: cut, not within a character, and without control characters,
// which must not reach a terminal.
std::string shown(std::string_view line) {
  std::string text(line.substr(0, kLineBytesMax));
  // Drops the continuation bytes of a character that the cut has split.
  while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xC0) == 0x80 &&
         text.size() < line.size())
    text.pop_back();
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  return text;
}

}  // namespace

YamlFault find_yaml_fault(std::string_view text, int line, int column, std::string_view message) {
  const std::vector<std::string_view> lines = lines_of(text);
  const YamlFault there{line, column, "", "`tandem explain` shows the form of a job file"};
  if (message.find("flow") != std::string_view::npos)
    return open_bracket(lines, line).value_or(there);
  if (line < 0 || line >= static_cast<int>(lines.size())) return there;
  const auto above = line_before(lines, line);
  if (!above) return there;
  const std::string_view here = lines[static_cast<std::size_t>(line)];
  const std::string_view before = lines[static_cast<std::size_t>(*above)];
  const int indent = indentation(here);
  const auto no_key = [](int at, int first) {
    return YamlFault{at, first, "no `key: value`", "a key is followed by a colon and a space"};
  };
  // A value without a key above this line makes the parser fail here.
  if (!is_entry(before) && indentation(before) <= indent)
    return no_key(*above, indentation(before));
  const std::vector<int> levels = open_levels(lines, line);
  const bool known = std::ranges::find(levels, indent) != levels.end();
  if (known || (indent > levels.back() && opens_section(before)))
    return !has_content(here) || is_entry(here) ? there : no_key(line, indent);
  return {line, indent,
          "indented by " + std::to_string(indent) + ", the line above by " +
              std::to_string(indentation(before)),
          "the keys of one section have the same indentation"};
}

std::string yaml_excerpt(std::string_view text, const YamlFault& fault) {
  const std::vector<std::string_view> lines = lines_of(text);
  if (fault.line < 0 || fault.line >= static_cast<int>(lines.size())) return "";
  const std::string number = std::to_string(fault.line + 1);
  const auto row = [&](int line) {
    std::string label = std::to_string(line + 1);
    // Numbers are aligned at their last digit: line 9 stands above line 10.
    label.insert(0, number.size() - std::min(label.size(), number.size()), ' ');
    return "\n  " + label + " | " + shown(lines[static_cast<std::size_t>(line)]);
  };
  std::string excerpt;
  if (const auto above = line_before(lines, fault.line)) excerpt += row(*above);
  excerpt += row(fault.line);
  const int column = std::clamp(fault.column, 0, static_cast<int>(kLineBytesMax));
  excerpt += "\n  " + std::string(number.size(), ' ') + " | " +
             std::string(static_cast<std::size_t>(column), ' ') + "^";
  return fault.note.empty() ? excerpt : excerpt + " " + fault.note;
}

}  // namespace tandem::job
