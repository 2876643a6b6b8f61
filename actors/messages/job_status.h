// The state of a job at one moment, as its exchange tells it to those who ask (exchange.h): the
// controller, the API, the command line, /metrics. Never on a wire. Fields whose names end in _s
// are seconds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/messages/evaluation_figures.h"
#include "actors/messages/reward.h"
#include "actors/messages/rollout.h"
#include "scheduler/fleet/fleet_gap.h"
#include "scheduler/fleet/fleet_rates.h"

namespace tandem::messages {

// One thing that the exchange or an actor waits for, in words that `tandem why` prints.
struct Wait {
  std::string who;        // "learner/0"
  std::string waits_for;  // "60 of 64 scored groups for step 12"
  double since_s = 0;     // how long the wait has lasted
  std::optional<double> deadline_s;
  std::string detail;         // a sentence for the reader; may be empty
  std::string ended_by = {};  // who ends it without a deadline (scheduler/fleet/wait_end.h)
};

// The newest trouble of a reward actor's program, as `tandem why` and `describe` show it.
struct TroubleView {
  RewardTrouble trouble;
  double since_s = 0;
};

// How far the warm start is, by the learner's newest report.
struct WarmStartStatus {
  std::int32_t step = 0, steps_max = 0;
  std::optional<double> metric;  // the newest measurement
  // The mean since the first report of this learner; empty before its second one.
  std::optional<double> steps_per_s;
  // The seconds until steps_max; `warm_start.until` may end it earlier. Empty without a rate.
  std::optional<double> eta_s;
};

// What the devices of a job have done and cost over its whole run (scheduler/fleet/cost.h).
struct CostStatus {
  double rollout_device_seconds = 0, learner_device_seconds = 0;
  double goodput = 0;  // trained tokens per device second of both pools
  // Set in a job that has prices: of a step, as the mean of the newest ones, and of all so far.
  std::optional<double> per_step, total;
  std::string currency;  // empty without prices
};

// The state of a job at one moment, for `tandem get`, `tandem describe`, the web page and /metrics.
struct JobStatus {
  bool restoring = false;  // the run is to be resumed, and its step is not known yet
  std::int64_t step = 0;   // the next step to commit, so as many steps are committed
  std::int64_t total_steps = 0;
  std::int64_t policy_version = -1;       // the newest published one; -1: the initial weights
  double reward_mean = 0;                 // over the newest committed step
  std::optional<EvaluationFigures> eval;  // figures of the newest evaluation
  // `async.max_staleness`, and the staleness found over the trained trajectories, in policy
  // versions.
  std::int64_t staleness_bound = 0, staleness_max = 0;
  double staleness_mean = 0;
  std::int64_t queue_depth = 0;  // groups generated and not yet in training
  // Groups that may wait while the learner trains a step: those of `async.lookahead` steps, and of
  // one at least.
  std::int64_t queue_limit = 0;
  double trainer_idle_fraction = 0;  // 0…1, over the time that the job has been running
  double tokens_generated_per_s = 0, tokens_trained_per_s = 0;  // over the last seconds
  // Of both pools over the newest steps; empty before two are committed.
  std::optional<scheduler::FleetRates> rates;
  // What they predict, beside what was measured; empty where they are not enough.
  std::optional<scheduler::FleetGap> gap;
  WarmStartStatus warm_start;
  // The remaining steps at the mean speed of the steps so far. Empty before the first step.
  std::optional<double> eta_s;
  // The mean time from one commit to the next over the newest steps, or of the whole run until
  // these are measured. Empty before the first step.
  std::optional<double> step_s;
  // Since the newest commit, also of a repeated step, or answer of an evaluation, or else since the
  // run began or was taken up. Empty while nothing is trained, and after the end.
  std::optional<double> since_progress_s;
  double journal_write_s = 0;  // the slowest write of the run's files in the newest minute or two
  std::vector<Wait> waits;
  std::vector<TroubleView> troubles;
  std::optional<std::string> reward_fails;  // why no completion is scored at present
  std::optional<std::string> disk_full;     // the run stands still until there is room
  std::optional<std::string> filter_keeps;  // the newest batch has groups that the filter is for
  // Optimizer steps that were skipped because their gradient was not finite, since the run began.
  std::uint64_t steps_skipped = 0;
  // Steps that changed nothing because their gradient was 0, since the run began.
  std::uint64_t steps_without_gradient = 0;
  // Trained completions whose reward failed and is that of reward.on_failure, likewise.
  std::int64_t rewards_failed = 0;
  // The versions that the learner broadcast and the epochs that failed, both since the exchange
  // started. Empty in a job whose weights are not broadcast.
  std::optional<std::int64_t> broadcasts, broadcast_failures;
  CostStatus cost;
};

struct ActorLoad {
  std::string actor;
  // The version that a rollout has installed, the newest published one for a reward actor, the next
  // one to commit for the learner.
  std::int64_t policy_version = -1;
  // Rollouts count trajectories and reward actors count groups, held over capacity: "31/32". A
  // rollout that drains has "3 left", a learner "step 41", "warm start 120/500" or "idle".
  std::string load;
  std::optional<RolloutStats> engine;  // set for a rollout, for /metrics
};

// Counts of groups. LG-1: issued = trained + discarded + live.
// Counted over the whole run, with the groups that a resumed run took over.
struct LedgerView {
  std::int64_t issued = 0, trained = 0, live = 0;
  std::vector<std::pair<std::string, std::int64_t>> discarded;  // by reason; no zeros
};

// The figures of the newest step that this exchange saw committed, as in metrics.jsonl.
struct StepFigures {
  double reward_mean = 0, loss = 0, grad_norm = 0, lr = 0;
  std::optional<double> ppo_kl, entropy;  // empty where no token counts in the loss
  // Empty where no trajectory of the batch is entirely of this step's version.
  std::optional<double> logprob_diff_max_at_staleness_0;
  double logprob_diff_mean = 0;      // as StepReport's
  double rollout_idle_fraction = 0;  // 0…1, over the whole run of all rollouts
  // How many versions the oldest sample that waits for training is behind the newest commit.
  std::int64_t oldest_sample_age_steps = 0;
  std::uint64_t skipped_in_row = 0;  // as StepReport's
};

// The answer to GetExchangeReport (exchange.h), from which the API, the command line and /metrics
// are answered.
struct ExchangeReport {
  JobStatus status;
  std::optional<StepFigures> last_step;  // empty: no step was committed yet
  std::vector<ActorLoad> loads;          // by actor
  LedgerView ledger;
};

}  // namespace tandem::messages
