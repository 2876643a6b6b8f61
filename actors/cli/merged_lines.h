// The logs of several actors merged into one text: each line has its actor before it, and lines are
// in the order of the times that they start with. Pure.
#pragma once

#include <string>
#include <vector>

namespace tandem::cli {

struct ActorLog {
  std::string actor;  // "rollout/0"
  std::string text;
};

// "rollout/0 | ", padded to the longest of `actors`, so that lines are aligned.
std::string line_prefix(const std::string& actor, const std::vector<std::string>& actors);

// Merges whole logs. A line without a time of its own, such as one of a stack trace, stays behind
// the line before it in its log. Lines of the same time stay in the order of `logs`.
std::string merged_lines(const std::vector<ActorLog>& logs);

}  // namespace tandem::cli
