// The rates of a run's two pools from the lines of its metrics.jsonl, for a run that has no `rates`
// of its own: one that was killed, or of a former version. Pure.
//
// The window is the newest half of the steps, since the first steps of a run are no picture of it:
// kStepsJudged at least, where there are as many, and at most kWindowStepsMost. It begins no sooner
// than the last change of the fleet. Rollouts that are missing in some lines and are back after
// kStepsJudged of them at most are taken to have died, which is no change, as in a run's own rates
// (actors/exchange/fleet_window.h); the lines say no more than how many are up. Lines of former
// versions lack the rollouts' own rates: these are then the tokens generated in the window by the
// time in which the engines were at work, which counts evaluations as work.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "actors/main/pool_plan.h"
#include "runtime/base/json.h"
#include "runtime/base/result.h"
#include "scheduler/fleet/fleet_rates.h"

namespace tandem::app {

inline constexpr std::int64_t kWindowStepsMost = 2000;

class MetricRates {
 public:
  // Takes a line, in the order of the file. Those of evaluations, and what is no line of a step,
  // are left out.
  void add(const nlohmann::json& line);
  std::int64_t steps() const { return steps_; }
  // Those that were up at the newest step; nullopt where its line does not say.
  std::optional<std::int64_t> rollouts() const;
  // kInvalid where no step has been added. `plan` is that of the run.
  Result<scheduler::FleetRates> rates(const PoolPlan& plan) const;

  // The keys that it reads, as the `keys` of the API takes them.
  static constexpr const char* kKeys =
      "timing_s/step,response_length/mean,tandem/wall_seconds,tandem/*idle_fraction,"
      "tandem/tokens_generated_per_trained,tandem/rollouts,tandem/recent/*,"
      "tandem/rollout_tokens_per_s/*,tandem/install_pause_*,tandem/prefix_hit_ratio";

 private:
  // How many of the newest lines come behind the last change of the fleet; all of them, if the
  // newest one does not say how many rollouts were up.
  std::size_t lines_of_fleet() const;

  std::int64_t steps_ = 0;            // of all lines
  std::deque<nlohmann::json> lines_;  // the newest of them, one more than a window has
};

}  // namespace tandem::app
