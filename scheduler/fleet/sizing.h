// Rate matching: how many rollouts a trainer needs, and the cost of too few or too many.
//
// First-order arithmetic of steady states, from measured rates (tokens per second). These are rules
// of thumb, not benchmarks: the headroom lowers nominal throughput to allow for pauses while
// weights are installed, stragglers, and lengths that drift. Pure; rates and counts must be
// positive (CHECKed).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/enum_names.h"
#include "runtime/base/result.h"
#include "scheduler/fleet/fleet_rates.h"

namespace tandem::scheduler {

inline constexpr double kSizingHeadroom = 0.8;
// The share of a trainer's time that may pass in waits for samples before a fleet is too small.
inline constexpr double kTrainerIdleTarget = 0.05;
// Over fewer steps a measurement is no ground for a verdict: the first ones also fill the queue.
inline constexpr std::int64_t kStepsJudged = 8;
inline constexpr double kSecondsPerHour = 60 * 60, kSecondsPerDay = 24 * kSecondsPerHour;

std::string whole_percent(double fraction);  // "31 %" of 0.312

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

// Completions of a mean length, in tokens, within some seconds: the rate at which a batch was
// generated, or the one that a trainer needs whose steps take so long.
struct TokenFlow {
  double completions, tokens_mean, seconds;
};
double tokens_per_s(const TokenFlow& flow);

// The side that waits for the other one where nothing bounds the queue between them.
enum class IdleSide { kTrainer, kNeither, kRollouts };
constexpr auto enum_names(IdleSide) {
  using enum IdleSide;
  return enum_name_rows<IdleSide>(
      {{kTrainer, "trainer"}, {kNeither, "neither"}, {kRollouts, "rollouts"}});
}
IdleSide idle_side(double generated_per_s, double required_per_s);

// Completions per second of replicas that each finish `completions` in `seconds`.
struct Replicas {
  std::int64_t count;
  std::int64_t completions;
  double seconds;
};
double completions_per_s(const Replicas& replicas);
double seconds_to_complete(const Replicas& replicas, std::int64_t completions);

// The two pools as the arithmetic sees them.
struct FleetModel {
  std::vector<double> rollouts_per_s;  // tokens per second of each rollout at work; at least one
  double pause_fraction = 0;           // of a rollout's time, for installs; in [0, 1)
  double generated_per_trained = 1;    // tokens generated per token trained
  double step_seconds = 0;             // the trainer's, without waits for samples
  double step_tokens = 0, completions_per_step = 0;
  // Rollouts generate while the trainer trains (async.max_staleness > 0); otherwise each waits for
  // the other in turn.
  bool overlaps = true;
};
// `pause_fraction` is the mean of the rollouts'. Rates without rollouts or steps are no model
// (CHECKed).
FleetModel model_of(const FleetRates& rates, bool overlaps);

// kInvalid where the arithmetic has no answer: a rate or time that is not a positive number, a
// share outside its bounds, or a fleet of more than kRolloutsMost rollouts.
inline constexpr std::int64_t kRolloutsMost = 1 << 20;
Result<void> check_model(const FleetModel& model, double headroom = kSizingHeadroom);

// The rates of the two pools as the formulas above have them: the mean rollout, its pauses and the
// tokens that are generated in vain taken off.
Rates rates_of(const FleetModel& model);

struct SteadyState {
  std::int64_t rollouts = 0;
  double cycle_seconds = 0;  // from one step to the next
  double trainer_idle_fraction = 0, rollout_idle_fraction = 0;
  double backlog_per_s = 0;  // tokens per second by which an unbounded queue would grow
  double completions_per_s = 0, steps_per_day = 0;
};
// Of so many rollouts: the first ones of the model where it has as many, and mean ones beyond.
SteadyState steady_state(const FleetModel& model, std::int64_t rollouts);

// The rollouts with which the trainer does not wait. Where nothing overlaps no number does that:
// then it is the number of which one more would shorten the cycle by less than a twentieth.
std::int64_t matched_rollouts(const FleetModel& model, double headroom = kSizingHeadroom);

}  // namespace tandem::scheduler
