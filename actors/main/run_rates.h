// The rates of a job or run, by the API or by the files of a run directory, with the plan by which
// it runs: what `tandem size --from` starts from.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "actors/cli/verb.h"
#include "actors/main/pool_plan.h"
#include "actors/main/rollout_room.h"
#include "runtime/base/result.h"
#include "scheduler/fleet/fleet_rates.h"

namespace tandem::app {

struct RunRates {
  std::string id;            // of the job or run, or its directory
  bool live = false;         // `tandem scale` changes it
  std::string from;          // where the rates are from: "rates", or "metrics.jsonl"
  std::size_t troubles = 0;  // those that the run tells of itself (`tandem why`)
  bool autoscaled = false;   // the job decides by itself how many rollouts it has
  PoolPlan plan;             // as it ran, `tandem scale` included where that is known
  // Why the rates are not those of the rollouts that are wanted; empty: they are.
  std::string unsettled;
  std::vector<std::string> notes;  // assumptions, a sentence each
  std::optional<RolloutRoom> room;
  scheduler::FleetRates rates;
  std::optional<double> staleness_mean;  // of what was trained
};

// `named` is a job, a run or a run directory; it is found as `tandem metrics` finds it. Errors:
// kNotFound; kInvalid for a run without a step and for one of actors alone.
Result<RunRates> read_run_rates(const cli::VerbContext& context, const std::string& named);

}  // namespace tandem::app
