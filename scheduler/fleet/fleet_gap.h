// The idle time of a job's trainer as its own rates predict it (sizing.h), beside that which was
// measured: which side waits, how many rollouts would match the trainer, and where the two figures
// are far apart, what accounts for most of that. Pure; people read text().
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "scheduler/fleet/fleet_rates.h"
#include "scheduler/fleet/sizing.h"
#include "scheduler/fleet/trainer_wait.h"
#include "scheduler/fleet/work_limits.h"

namespace tandem::scheduler {

// A larger difference of the two fractions is one to explain.
inline constexpr double kGapLarge = 0.1;

struct FleetView {
  const FleetRates& rates;
  bool overlaps = true;       // as FleetModel's
  std::int64_t rollouts = 0;  // up, without those that drain
  bool autoscaled = false;    // the job has an autoscale, which a number by hand would turn off
  WorkLimits limits{};
};

// What accounts for most of the time that the trainer waits beyond the prediction.
struct GapCause {
  TrainerWait wait = TrainerWait::kSamples;
  double seconds = 0;               // of each step
  std::optional<LimitRaise> raise;  // the key of the job that ends most of it, where one does
};

struct FleetGap {
  std::int64_t steps = 0;                    // of the window
  bool overlaps = true, autoscaled = false;  // as FleetView's
  std::int64_t rollouts = 0, rollouts_matched = 0;
  double trainer_idle_fraction = 0, rollout_idle_fraction = 0;  // predicted of `rollouts`
  double trainer_idle_measured = 0, rollout_idle_measured = 0;
  double install_seconds = 0;     // for which a mean rollout paused in each step
  std::int64_t rollout_ends = 0;  // deaths, and drains of such as come back
  std::optional<GapCause> cause;  // set where more was measured, by kGapLarge
};

// nullopt: too little is known for a prediction (no rollout generates, or nothing is trained), or
// check_model() refuses what was measured.
std::optional<FleetGap> gap_of(const FleetView& fleet);

// Two parts of the sentence that begins "predicted 4 %, measured 30 %: ": `what` names the cause,
// and `mend` says what to change, empty where nothing of that kind is known. The gap has a cause.
struct CauseWords {
  std::string what, mend;
};
CauseWords cause_words(const FleetGap& gap);

// "trainer idle 31 % (predicted 29 %): 3 rollouts would match it, 2 are up: tandem scale JOB
// rollout=3"; without a number where the job is autoscaled, which has a headroom of its own.
// nullopt where the trainer is hardly idle, or kStepsJudged are not trained yet.
std::optional<std::string> text(const FleetGap& gap, const std::string& job);

}  // namespace tandem::scheduler
