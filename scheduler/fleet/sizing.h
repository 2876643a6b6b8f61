// Rate matching: how many rollout instances a trainer needs, and the cost of too few or too many.
//
// First-order arithmetic of steady states, from measured rates (tokens per second). These are rules
// of thumb, not benchmarks: the headroom lowers nominal throughput to allow for pauses while
// weights are installed, stragglers, and lengths that drift. Pure; rates and counts must be
// positive (CHECKed).
#pragma once

#include <cstdint>

namespace tandem::scheduler {

inline constexpr double kSizingHeadroom = 0.8;

struct Rates {
  double consumed_per_s;  // tokens the trainer takes when it never waits: batch tokens / step time
  double instance_per_s;  // tokens one rollout instance generates under the real recipe
};

// ceil(consumed / (instance · headroom)); headroom in (0, 1].
std::int64_t matched_instances(const Rates& rates, double headroom = kSizingHeadroom);

// The share of each cycle in which the trainer waits for samples: 1 - step / max(step, produce).
double trainer_idle_fraction(const Rates& rates, std::int64_t instances);

// The share of the fleet's rate that a bounded queue holds back.
double rollout_idle_fraction(const Rates& rates, std::int64_t instances);

// Tokens per second by which an unbounded queue would grow.
double backlog_per_s(const Rates& rates, std::int64_t instances);

// Completions per second of replicas that each finish `completions` in `seconds`.
struct Replicas {
  std::int64_t count;
  std::int64_t completions;
  double seconds;
};
double completions_per_s(const Replicas& replicas);
double seconds_to_complete(const Replicas& replicas, std::int64_t completions);

}  // namespace tandem::scheduler
