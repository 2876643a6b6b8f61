#include "actors/messages/reward.h"

namespace tandem::actors {

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

}  // namespace tandem::actors
