// The conversation of the controller and a job's exchange; both live in the controller's process.
//
//   controller -> exchange   ActorDown, DrainActor, EndJob, Ask<…>
//   exchange -> controller   JobProgress, ActorDrained, ExchangeEvent, JobEnded
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "actors/messages/evaluation_figures.h"
#include "actors/messages/reward.h"
#include "actors/messages/roles.h"
#include "actors/messages/rollout.h"
#include "runtime/base/clock.h"
#include "runtime/base/ids.h"

namespace tandem::actors {

struct ActorDown {  // this life is over: its leases end
  std::string actor;
  Incarnation incarnation;
  std::string reason;
};

struct DrainActor {  // no more work; what it holds is finished or, at the deadline, handed back
  std::string actor;
  Incarnation incarnation;
  std::int64_t deadline_ms = 0;  // from now
};

enum class JobOutcome : std::uint8_t { kSucceeded, kFailed, kCancelled };

// How long a cancelled job may take to finish its step and save a checkpoint.
inline constexpr Duration kSaveOnCancelMax = std::chrono::minutes(2);

// Begins the reason of a cancelled job that met a failure before it had ended.
inline constexpr const char* kWhileCancelled = "was being cancelled when: ";

struct EndJob {  // cancelled, or a role cannot be kept alive: write result.json and say JobEnded
  JobOutcome outcome = JobOutcome::kCancelled;
  std::string reason;
};

// What the exchange waits for, in words that `tandem why` prints.
struct Wait {
  std::string who;        // "learner/0"
  std::string waits_for;  // "60 of 64 scored groups for step 12"
  double since_s = 0;
  std::optional<double> deadline_s;
  std::string detail;
};

// The newest trouble of a reward actor's program, as `tandem why` and `describe` show it.
struct TroubleView {
  RewardTrouble trouble;
  double since_s = 0;
};

struct JobStatus {
  std::int64_t step = 0;
  std::int64_t total_steps = 0;
  std::int64_t policy_version = -1;
  double reward_mean = 0;
  std::optional<EvaluationFigures> eval;  // of the newest evaluation
  std::int64_t staleness_bound = 0, staleness_max = 0;
  double staleness_mean = 0;
  std::int64_t queue_depth = 0;  // groups generated and not yet in training
  double trainer_idle_fraction = 0;
  double tokens_generated_per_s = 0, tokens_trained_per_s = 0;
  std::int32_t warm_start_step = 0, warm_start_steps_max = 0;
  std::optional<double> warm_start_metric;
  std::optional<double> eta_s;
  std::vector<Wait> waits;
  std::vector<TroubleView> troubles;
  // Optimizer steps that were skipped because their gradient was not finite, since the run began.
  std::uint64_t steps_skipped = 0;
  // Of a job whose weights are broadcast: versions that the learner broadcast, and epochs that
  // failed, since the exchange started.
  std::optional<std::int64_t> broadcasts, broadcast_failures;
};

struct ActorLoad {  // by actor name
  std::string actor;
  std::int64_t policy_version = -1;
  std::string load;                    // "31/32", "step 41", "3 left"
  std::optional<RolloutStats> engine;  // of a rollout, for /metrics
};

struct LedgerView {
  std::int64_t issued = 0, trained = 0, live = 0;
  std::vector<std::pair<std::string, std::int64_t>> discarded;  // by reason
};

// Of the newest step that this exchange saw committed, as in metrics.jsonl.
struct StepFigures {
  double reward_mean = 0, loss = 0, ppo_kl = 0, entropy = 0, grad_norm = 0, lr = 0;
  std::optional<double> logprob_diff_max_at_staleness_0;  // where the batch has such tokens
  double rollout_idle_fraction = 0;
  std::int64_t oldest_sample_age_steps = 0;
  std::uint64_t skipped_in_row = 0;  // as StepReport's
};

struct ExchangeReport {
  JobStatus status;
  std::optional<StepFigures> last_step;
  std::vector<ActorLoad> loads;
  LedgerView ledger;
};
struct GetExchangeReport {
  using Reply = ExchangeReport;
};

struct GroupView {
  std::uint64_t group = 0;
  std::uint64_t attempt = 0;
  std::string state;
  std::string holder;
  std::optional<std::int64_t> due;
  double age_s = 0;
};
struct GetGroups {
  using Reply = std::vector<GroupView>;
};

enum class JobPhase : std::uint8_t { kStarting, kWarmStart, kRunning, kStopping };

struct JobProgress {
  std::string job;
  JobPhase phase = JobPhase::kStarting;
  std::string message;
};

struct ActorDrained {
  std::string job;
  std::string actor;
  Incarnation incarnation;
};

struct ExchangeEvent {  // for `tandem events`: of the job, or of one of its actors
  std::string job;
  std::string subject;
  std::string message;
};

struct JobEnded {
  std::string job;
  JobOutcome outcome = JobOutcome::kSucceeded;
  std::string reason;
};

using ExchangeNotices = std::variant<JobProgress, ActorDrained, ExchangeEvent, JobEnded>;

}  // namespace tandem::actors
