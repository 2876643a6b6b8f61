#include "actors/forecast/continuous_batch.h"

#include "runtime/base/check.h"

namespace tandem::forecast {

void ContinuousBatch::add(std::uint64_t request, std::int64_t tokens) {
  CHECK(tokens >= 1);
  by_end_.insert(
      {.end = steps_ + tokens, .request = request, .number = numbers_++, .begun = steps_});
  begun_sum_ += steps_;
}

void ContinuousBatch::remove(std::uint64_t request) {
  std::erase_if(by_end_, [&](const Sequence& sequence) {
    if (sequence.request != request) return false;
    begun_sum_ -= sequence.begun;
    return true;
  });
}

std::int64_t ContinuousBatch::steps_to_next_end() const {
  CHECK(!by_end_.empty());
  return by_end_.begin()->end - steps_;
}

std::vector<std::uint64_t> ContinuousBatch::decode(std::int64_t steps) {
  CHECK(steps >= 0 && (by_end_.empty() || steps <= steps_to_next_end()));
  steps_ += steps;
  std::vector<std::uint64_t> left;
  while (!by_end_.empty() && by_end_.begin()->end == steps_) {
    left.push_back(by_end_.begin()->request);
    begun_sum_ -= by_end_.begin()->begun;
    by_end_.erase(by_end_.begin());
  }
  return left;
}

}  // namespace tandem::forecast
