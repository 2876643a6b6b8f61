// The keys of a job that say how large its two pools are and how they work together, and what
// becomes of measured rates when a job is planned otherwise than the one that was measured. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "actors/runs/run_catalogue.h"
#include "runtime/base/result.h"
#include "scheduler/fleet/fleet_cost.h"
#include "scheduler/fleet/fleet_rates.h"
#include "scheduler/fleet/work_limits.h"

namespace tandem::app {

struct PoolPlan {
  std::optional<std::int64_t> replicas;     // of rollouts; nullopt: not said
  std::int64_t ranks = 1;                   // of the learner
  std::int64_t completions_per_prompt = 1;  // rollout.n
  std::int64_t prompts_per_step = 0;        // data.train_batch_size; 0: not said
  std::int64_t max_staleness = 1;           // async.max_staleness
  bool group_prompt_shared = true;          // see scheduler::RecoveryFacts
  // scheduler::devices_of() of a rollout and of a rank of the learner
  double devices_per_rollout = 1, devices_per_rank = 1;
  double threads_per_rollout = 1, threads_per_rank = 1;  // of the host
  std::optional<scheduler::Pricing> prices;              // section `pricing`
  scheduler::WorkLimits limits;

  std::int64_t completions_per_step() const { return prompts_per_step * completions_per_prompt; }
  bool overlaps() const { return max_staleness > 0; }
  // Whether both pools are as large and as busy as those of the other plan.
  bool same_fleet(const PoolPlan& other) const {
    return replicas == other.replicas && ranks == other.ranks &&
           completions_per_step() == other.completions_per_step() &&
           max_staleness == other.max_staleness;
  }
};

// The plan of a job from its printed keys. kInvalid for a job of actors alone, which has no
// learner; `where` is its name in the error.
Result<PoolPlan> plan_of(const runs::JobKeys& keys, const std::string& where);

// The prices of a file: those of scheduler::parse_pricing(), where a newline may stand for a comma
// and `:` for `=`, so that a small YAML file is one too. `#` begins a comment.
Result<scheduler::Pricing> prices_of_file(std::string_view text, const std::string& where);

// The rates that the run of `measured` would have as `planned`: tokens and completions per step in
// proportion to the batch, and the learner's seconds to these and inversely to its ranks. Lengths,
// the rollouts' rates and pauses stay as they were.
scheduler::FleetRates replanned(const scheduler::FleetRates& rates, const PoolPlan& measured,
                                const PoolPlan& planned);

}  // namespace tandem::app
