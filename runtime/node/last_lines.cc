#include "runtime/node/last_lines.h"

#include <algorithm>
#include <utility>

#include "runtime/base/text.h"

namespace tandem::node {

std::string one_line(std::string_view text, std::size_t bytes_max) {
  return visible(cut_utf8(text, bytes_max), Lines::kOne);
}

void LastLines::add(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t end = std::min(bytes.find('\n'), bytes.size());
    // One byte more than is shown tells that the line was cut.
    open_ += bytes.substr(0, std::min(end, kLastLineBytesMax + 1 - open_.size()));
    if (end == bytes.size()) return;
    end_line();
    bytes.remove_prefix(end + 1);
  }
}

void LastLines::end_line() {
  if (open_.find_first_not_of(" \t\r") != std::string::npos) ended_.push_back(open_);
  open_.clear();
  if (ended_.size() > kLastLines) ended_.pop_front();
}

std::vector<std::string> LastLines::lines() const {
  LastLines all = *this;
  all.end_line();
  std::vector<std::string> lines;
  for (const std::string& line : all.ended_) lines.push_back(one_line(line, kLastLineBytesMax));
  return lines;
}

}  // namespace tandem::node
