// A stable sort by time, where a line without a time inherits that of the line before it. Times
// sort as text, since their form has a fixed width; clocks of different hosts are not corrected.
#include "actors/cli/merged_lines.h"

#include <algorithm>
#include <sstream>
#include <string_view>

namespace tandem::cli {
namespace {

constexpr std::string_view kTimeShape = "dddd-dd-ddTdd:dd:dd";  // as runtime/base/log.h writes it

// The time at the start of a line, as text that sorts; empty where the line has none.
std::string_view time_of(std::string_view line) {
  if (line.size() < kTimeShape.size()) return {};
  for (std::size_t i = 0; i < kTimeShape.size(); ++i) {
    const bool digit = line[i] >= '0' && line[i] <= '9';
    if (kTimeShape[i] == 'd' ? !digit : line[i] != kTimeShape[i]) return {};
  }
  return line.substr(0, line.find(' '));
}

}  // namespace

std::string line_prefix(const std::string& actor, const std::vector<std::string>& actors) {
  std::size_t longest = actor.size();
  for (const std::string& other : actors) longest = std::max(longest, other.size());
  return actor + std::string(longest - actor.size(), ' ') + " | ";
}

std::string merged_lines(const std::vector<ActorLog>& logs) {
  struct Line {
    std::string time, text;
  };
  std::vector<std::string> actors;
  for (const ActorLog& log : logs) actors.push_back(log.actor);
  std::vector<Line> lines;
  for (const ActorLog& log : logs) {
    const std::string prefix = line_prefix(log.actor, actors);
    std::istringstream text(log.text);
    std::string time;
    for (std::string line; std::getline(text, line);) {
      if (const std::string_view own = time_of(line); !own.empty()) time = own;
      lines.push_back({time, prefix + line});
    }
  }
  std::ranges::stable_sort(lines, {}, &Line::time);
  std::string merged;
  for (const Line& line : lines) merged += line.text + "\n";
  return merged;
}

}  // namespace tandem::cli
