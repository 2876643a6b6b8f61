#include "actors/messages/reward.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <span>

#include "runtime/base/digest.h"

namespace tandem::messages {

std::uint64_t vote_of(std::string_view answer) {
  return checksum64(std::as_bytes(std::span(answer)));
}

std::string not_a_score(std::string_view number) {
  return "score is " + std::string(number) +
         "; a score must be a finite number, at most 3.4e38 in size";
}

std::optional<std::string> score_fault(double value) {
  if (std::isnan(value)) return not_a_score("NaN");
  if (std::isinf(value)) return not_a_score(value > 0 ? "Infinity" : "-Infinity");
  if (std::abs(value) <= std::numeric_limits<float>::max()) return std::nullopt;
  std::array<char, 32> number;
  const auto written = std::to_chars(number.data(), number.data() + number.size(), value);
  return not_a_score({number.data(), written.ptr});
}

std::string text(const RewardTrouble& trouble) {
  std::string text = trouble.what;
  // 0: the program's trouble is not charged to an attempt of any completion.
  if (trouble.attempt > 0)
    text += " (attempt " + std::to_string(trouble.attempt) + " of " +
            std::to_string(trouble.attempts) + ")";
  for (std::size_t i = 0; i < trouble.stderr_tail.size(); ++i)
    text += (i == 0 ? "; its stderr ends: " : " | ") + trouble.stderr_tail[i];
  if (!trouble.log.empty()) text += "; log: " + trouble.log;
  return text;
}

}  // namespace tandem::messages
