// The totals of a run that its journal keeps, for result.json of a run that was resumed. Plain
// numbers; run_statistics.h adds to them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/wire/fields.h"

namespace tandem::exchange {

struct StalenessBin {
  std::int64_t staleness = 0;  // in steps
  std::int64_t trajectories = 0;
  bool operator==(const StalenessBin&) const = default;
};
TANDEM_WIRE(StalenessBin, staleness, trajectories)

struct StalenessCount {  // trained trajectories by staleness
  // Ascending; a staleness without trajectories has no entry.
  std::vector<StalenessBin> bins;
  std::int64_t max() const;  // 0 without trajectories, as mean() and quantile()
  double mean() const;
  // The least staleness that at least the share q of the trajectories does not exceed; q in 0…1.
  std::int64_t quantile(double q) const;
  void add(std::int64_t staleness, std::int64_t trajectories = 1);
  void add(const StalenessCount& other);
  bool operator==(const StalenessCount&) const = default;
};
TANDEM_WIRE(StalenessCount, bins)

// Totals of training, every step once: steps beyond a checkpoint that the run went back to do not
// count.
struct TrainedTotals {
  StalenessCount staleness;
  std::uint64_t tokens = 0;
  // The greatest finite difference: the journal's JSON has no other numbers.
  double logprob_diff_max_at_staleness_0 = 0;
  std::uint64_t tokens_at_staleness_0 = 0;
  std::uint64_t steps_skipped = 0;           // as StepReport's, those of the warm start included
  std::uint64_t steps_without_gradient = 0;  // optimizer steps of RL whose gradient was 0
  std::int64_t rewards_failed = 0;           // trajectories with the reward of reward.on_failure
  bool operator==(const TrainedTotals&) const = default;
};
TANDEM_WIRE(TrainedTotals, staleness, tokens, logprob_diff_max_at_staleness_0,
            tokens_at_staleness_0, steps_skipped, steps_without_gradient, rewards_failed)

// Totals of work, of all incarnations of the run, also of work that was lost and repeated.
struct WorkTotals {
  std::uint64_t tokens_generated = 0;  // completion tokens of accepted groups
  // Publications of versions by the learner.
  std::uint64_t publish_count = 0, publish_bytes = 0;
  double wall_seconds = 0;     // of earlier incarnations together
  double running_seconds = 0;  // of earlier incarnations, from the first step on
  // Busy times, from which the idle fractions follow.
  double learner_busy_seconds = 0;   // part of the running seconds
  double rollout_busy_seconds = 0;   // only of rollout actors that are gone
  double rollout_actor_seconds = 0;  // their lifetimes while the run trained
  bool operator==(const WorkTotals&) const = default;
};
TANDEM_WIRE(WorkTotals, tokens_generated, publish_count, publish_bytes, wall_seconds,
            running_seconds, learner_busy_seconds, rollout_busy_seconds, rollout_actor_seconds)

// The totals that the journal keeps after each step. `publish_seconds` is the duration of this
// step's own publication.
struct RunTotals {
  TrainedTotals trained;
  WorkTotals work;
  std::optional<double> publish_seconds;
  bool operator==(const RunTotals&) const = default;
};
TANDEM_WIRE(RunTotals, trained, work, publish_seconds)

}  // namespace tandem::exchange
