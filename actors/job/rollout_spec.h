// The sections of a job that say how completions are generated: `rollout`, for training, and
// `eval`, for the prompts of data.val_files. Parts of JobSpec (job_spec.h), which explains how
// fields and keys correspond; docs/job-file.md describes each key.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/job/actor_spec.h"
#include "actors/job/job_values.h"
#include "actors/job/placed_name.h"
#include "actors/rollout/engine_config.h"
#include "runtime/base/check.h"

namespace tandem::job {

// The server of an engine that computes in one of its own.
struct EngineServerSpec {
  std::optional<std::vector<std::string>> command;  // argv; nullopt: the engine's usual program
  std::optional<PlacedName> python;                 // the interpreter of its environment
  std::vector<std::string> args;                    // behind those that Tandem gives
  std::map<std::string, std::string> env;
  std::vector<std::string> url;  // servers that run already, one for each actor; empty: started
  double startup_timeout_s = 1200;
  double request_timeout_s = 600;
  std::optional<double> logprob_tolerance;  // nullopt: by what the server computes in
  WeightTransfer weight_transfer = WeightTransfer::kAuto;
  bool packed = true;            // for weight_transfer nccl: tensors go in chunks
  bool trusted_network = false;  // weights may go unencrypted to servers on other hosts
  // For weight_transfer disk, where the server sees it too; nullopt: in the run's directory.
  std::optional<std::filesystem::path> weights_dir;
};

// How a server is started.
struct EngineShapeSpec {
  std::int64_t tensor_model_parallel_size = 1, data_parallel_size = 1;
  std::optional<EngineDtype> dtype;  // nullopt: model.dtype
  std::optional<std::string> quantization;
  bool enforce_eager = false;
  LoadFormat load_format = LoadFormat::kDummy;
  JsonObject vllm, sglang, tensorrt_llm;  // engine_kwargs: further settings, by its own names
};

// The rollout actors and their engine.
struct RolloutSpec {
  EngineName name = EngineName::kNative;
  EngineServerSpec engine;  // of any but the native one
  // Actors at the start; `tandem scale` changes the number while the job runs.
  std::int64_t replicas = 1;
  std::int64_t n = 8;  // trajectories per group
  rollout::SamplingParams sampling;
  rollout::EngineArgs args;
  EngineShapeSpec shape;  // of any but the native one
  // The share of a GPU's memory that each engine may take; on a CPU, the share of the memory that
  // the node offers for all rollouts together.
  double gpu_memory_utilization = 0.5;
};

// The engine_kwargs of its engine, which has a server.
inline const JsonObject& kwargs_of(const RolloutSpec& rollout) {
  switch (rollout.name) {
    case EngineName::kVllm:
      return rollout.shape.vllm;
    case EngineName::kSglang:
      return rollout.shape.sglang;
    case EngineName::kTensorrtLlm:
      return rollout.shape.tensorrt_llm;
    case EngineName::kNative:
      break;
  }
  CHECK(false);
  return rollout.shape.vllm;
}

// How the validation prompts are completed.
struct EvalSpec {
  std::int64_t n = 1;      // completions of each prompt
  double temperature = 0;  // 0: greedy
  double top_p = 1.0;
  std::int64_t top_k = 0;      // 0: off
  bool greedy = false;         // one greedy completion beside the n sampled ones
  double rollout_share = 0.5;  // (0, 1] of a rollout's sequences, while groups wait
};

}  // namespace tandem::job
