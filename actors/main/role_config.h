// From a job file to each role's own config: the only place that knows both sides.
#pragma once

#include <string>
#include <vector>

#include "actors/controller/controller_core.h"
#include "actors/exchange/exchange.h"
#include "actors/learner/learner_config.h"
#include "actors/learner/warm_start.h"
#include "actors/main/job/dataset.h"
#include "actors/main/job/job_spec.h"
#include "actors/model/model_config.h"
#include "actors/model/tokenizer.h"
#include "actors/reward/verifier.h"
#include "actors/rollout/engine.h"
#include "runtime/device/manifest.h"
#include "runtime/weights/weights.h"

namespace tandem::cli {

struct RunPlace {  // which run of a job: its id and directory
  std::string job;
  std::string run_dir;
};

runtime::DType dtype_of(const ModelSpec& model);
actors::JobShape job_shape(const JobSpec& job);
scheduler::Budget budget_of(const JobSpec& job);
actors::EngineConfig engine_config(const JobSpec& job, std::uint64_t machine_memory_bytes);
actors::TrainerConfig trainer_config(const JobSpec& job, const RunPlace& run, bool resume);
// `log` is the file that holds what a program says on stderr; empty: none is known.
actors::VerifierConfig verifier_config(const JobSpec& job, const std::string& log);
runtime::WeightsConfig weights_config(const JobSpec& job, const RunPlace& run,
                                      const runtime::Manifest& manifest);
// Without the manifest, for removing what is left.
runtime::WeightsConfig weights_family(const JobSpec& job, const RunPlace& run);

// How the records of `data.val_files` are evaluated: in the run, and by `tandem eval`.
actors::EvaluationPlan evaluation_plan(const JobSpec& job, const std::vector<Record>& records);
Result<actors::ExchangeConfig> exchange_config(const JobSpec& job, const RunPlace& run,
                                               bool resume);

// The records of `warm_start.train_files` as tokens, each completion ended by the model's eos.
Result<std::vector<actors::WarmStartRecord>> warm_start_records(const JobSpec& job,
                                                                const actors::ModelConfig& model,
                                                                const actors::Tokenizer& tokenizer);

}  // namespace tandem::cli
