// The logs of several actors as one text: each line with its actor before it, in the order of the
// times that the lines start with. Pure.
#pragma once

#include <string>
#include <vector>

namespace tandem::cli {

struct ActorLog {
  std::string actor;  // "rollout/0"
  std::string text;
};

// "rollout/0 | ", padded to the longest of `actors`.
std::string line_prefix(const std::string& actor, const std::vector<std::string>& actors);

// A line without a time of its own stays behind the one before it in its log. Lines of one time
// stay in the order of `logs`.
std::string merged_lines(const std::vector<ActorLog>& logs);

}  // namespace tandem::cli
