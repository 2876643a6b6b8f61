#include "actors/rollout/truncation.h"

#include <iterator>

#include "runtime/base/check.h"

namespace tandem::rollout {

void truncate(std::vector<std::int32_t>& tokens, std::int64_t tokens_max, Truncation truncation) {
  CHECK(tokens_max > 0);
  const std::int64_t surplus = std::ssize(tokens) - tokens_max;
  if (surplus <= 0 || !truncates(truncation)) return;
  const std::int64_t kept_before = truncation == Truncation::kLeft    ? 0
                                   : truncation == Truncation::kRight ? tokens_max
                                                                      : tokens_max / 2;
  const auto cut = tokens.begin() + kept_before;
  tokens.erase(cut, cut + surplus);
}

}  // namespace tandem::rollout
