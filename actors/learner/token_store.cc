#include "actors/learner/token_store.h"

#include <algorithm>

#include "runtime/base/check.h"

namespace tandem::learner {
namespace {

// The micro-batch's values of its sequence s.
template <class T>
std::span<T> of_sequence(const MicroBatch& micro, std::size_t s, std::span<T> values) {
  const auto begin = static_cast<std::size_t>(micro.sequence_begin[s]);
  return values.subspan(begin, static_cast<std::size_t>(micro.sequence_begin[s + 1]) - begin);
}

}  // namespace

void TokenStore::reset(const TrainBatch& batch) {
  begin_.assign(1, 0);
  for (const BatchGroup& group : batch.groups)
    for (const TrainTrajectory& trajectory : group.trajectories)
      begin_.push_back(begin_.back() + trajectory.tokens.size());
  held_.assign(begin_.size() - 1, false);
  values_.assign(begin_.back(), 0.0f);
  filled_ = false;
}

void TokenStore::put(const MicroBatch& micro, std::span<const float> values) {
  for (std::size_t s = 0; s < micro.sequences.size(); ++s) {
    const auto index = static_cast<std::size_t>(micro.sequences[s]);
    const std::span<const float> own = of_sequence(micro, s, values);
    // A micro-batch has whole trajectories (PK-1).
    CHECK(own.size() == begin_[index + 1] - begin_[index]);
    std::ranges::copy(own, values_.begin() + static_cast<std::ptrdiff_t>(begin_[index]));
    held_[index] = true;
  }
  filled_ = true;
}

void TokenStore::get(const MicroBatch& micro, std::span<float> values) const {
  for (std::size_t s = 0; s < micro.sequences.size(); ++s) {
    const auto own = of(static_cast<std::size_t>(micro.sequences[s]));
    CHECK(!own.empty());
    std::ranges::copy(own, of_sequence(micro, s, values).begin());
  }
}

std::span<const float> TokenStore::of(std::size_t trajectory) const {
  if (!held_[trajectory]) return {};
  const std::size_t begin = begin_[trajectory];
  return std::span(values_).subspan(begin, begin_[trajectory + 1] - begin);
}

}  // namespace tandem::learner
