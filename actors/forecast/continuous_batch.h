// The sequences that an engine decodes at once, in numbers alone: each step gives each of them a
// token, and those that have all of theirs leave. Pure; one thread.
//
//   CB-1  A sequence leaves after exactly as many steps as it has tokens.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace tandem::forecast {

class ContinuousBatch {
 public:
  // `request` is whatever the caller knows the sequence's group by; `tokens` >= 1.
  void add(std::uint64_t request, std::int64_t tokens);
  // Sequences of one request, as they leave.
  void remove(std::uint64_t request);

  std::int64_t running() const { return static_cast<std::int64_t>(by_end_.size()); }
  // Tokens that the running sequences have so far, without their prompts.
  std::int64_t tokens() const { return running() * steps_ - begun_sum_; }
  // Steps until the next sequence leaves; CHECKs that one runs.
  std::int64_t steps_to_next_end() const;
  // Decodes `steps` of them, at most that many. Returns the requests of the sequences that left,
  // one entry each.
  std::vector<std::uint64_t> decode(std::int64_t steps);

 private:
  struct Sequence {
    std::int64_t end = 0;  // the step after which it leaves
    std::uint64_t request = 0, number = 0;
    std::int64_t begun = 0;
    auto key() const { return std::tie(end, number); }
    bool operator<(const Sequence& other) const { return key() < other.key(); }
  };
  std::int64_t steps_ = 0, begun_sum_ = 0;
  std::uint64_t numbers_ = 0;
  std::set<Sequence> by_end_;
};

}  // namespace tandem::forecast
