// Translates a job into the configuration of each role: the only file that knows both the keys of a
// job and the configuration of every role. All functions are pure, except those that read data
// files and say so.
#pragma once

#include <string>
#include <vector>

#include "actors/exchange/exchange.h"
#include "actors/job/dataset.h"
#include "actors/job/job_spec.h"
#include "actors/learner/learner_config.h"
#include "actors/learner/warm_start.h"
#include "actors/main/roles/job_prompts.h"
#include "actors/main/roles/planned_model.h"
#include "actors/model/model_config.h"
#include "actors/model/tokenizer.h"
#include "actors/reward/make_verifier.h"
#include "actors/rollout/engine.h"
#include "runtime/device/manifest.h"
#include "runtime/weights/weights_config.h"

namespace tandem::app {

// The run that a configuration is for.
struct RunLocation {
  std::string job;  // its id: "arith-3"
  std::string run_dir;
};

Duration duration_of(double seconds);  // that a key of a job has
device::DType dtype_of(const job::ModelSpec& model);
// K, L, m, B and the number of steps.
scheduler::Budget budget_of(const job::JobSpec& job);
bool has_fixed_lag(const job::JobSpec& job);
// kv_memory_bytes is this rollout's share of `machine_memory_bytes`; a caller that knows better
// replaces it (roles/rollout_role.cc).
rollout::EngineConfig engine_config(const job::JobSpec& job, std::uint64_t machine_memory_bytes);
// `resume`: the trainer starts from the newest complete checkpoint of the run, if there is one.
learner::TrainerConfig trainer_config(const job::JobSpec& job, const RunLocation& run, bool resume);
// `log` is the file with the stderr of the user's programs; empty: none is known.
reward::RewardParts reward_parts(const job::JobSpec& job, const std::string& log);
// How the learner publishes and rollouts fetch. Publisher and subscribers must be given the same
// values.
weights::WeightsConfig weights_config(const job::JobSpec& job, const RunLocation& run,
                                      const device::Manifest& manifest);
// The family without the layout: enough to remove the published versions of a run, or to count
// them.
weights::WeightsConfig weights_family(const job::JobSpec& job, const RunLocation& run);
// What the learner and a rollout that fetches hold at most for what changes from version to
// version, each of `published` bytes.
std::int64_t changes_bytes(const job::JobSpec& job, Hosts hosts, std::int64_t published);

// How the records of `data.val_files` are evaluated, in the run and by `tandem eval` alike.
exchange::EvaluationPlan evaluation_plan(const job::JobSpec& job,
                                         const std::vector<job::Record>& records);
// `prompts` are those of `job`.
exchange::ExchangeConfig exchange_config(const job::JobSpec& job, const RunLocation& run,
                                         bool resume, JobPrompts prompts);

// Gives the records of `warm_start.train_files` to `take` as tokens, in file order, each completion
// ended by the end of the chat template's turn, or by the model's first end token. Gives none
// without a warm start. kInvalid, with "file:line", for text that the tokenizer cannot encode and
// for a record that is longer than the job allows, after data.truncation of its prompt.
using TakeWarmStartRecord = std::function<void(learner::WarmStartRecord)>;
Result<void> read_warm_start(const job::JobSpec& job, const model::ModelConfig& model,
                             const model::Tokenizer& tokenizer, const TakeWarmStartRecord& take,
                             const job::TellReading& tell = {});
// All of these records.
Result<std::vector<learner::WarmStartRecord>> warm_start_records(const job::JobSpec& job,
                                                                 const model::ModelConfig& model,
                                                                 const model::Tokenizer& tokenizer);

}  // namespace tandem::app
