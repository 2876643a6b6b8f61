// The sections of a job that say how completions are generated: `rollout`, for training, and
// `eval`, for the prompts of data.val_files. Parts of JobSpec (job_spec.h), which explains how
// fields and keys correspond; docs/job-file.md describes each key.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "actors/main/job/job_values.h"

namespace tandem::cli {

// The rollout actors and their engine. Sampling has defaults that leave the distribution whole,
// since the ratios of the loss are of the whole distribution.
struct RolloutSpec {
  EngineName name = EngineName::kNative;
  // Actors at the start; `tandem scale` changes the number while the job runs.
  std::int64_t replicas = 1;
  std::int64_t n = 8;  // trajectories per group
  double temperature = 1.0;
  double top_p = 1.0;
  std::int64_t top_k = 0;  // 0: off
  double min_p = 0.0;
  std::int64_t min_tokens = 0;
  // Texts and tokens that end a completion, beside the end tokens of the model.
  std::vector<std::string> stop;
  std::vector<std::int64_t> stop_token_ids;
  std::int64_t tensor_model_parallel_size = 1;
  // The share of a GPU's memory that each engine may take; on a CPU, the share of the memory that
  // the node offers for all rollouts together.
  double gpu_memory_utilization = 0.5;
  // Bounds of one forward pass: sequences that decode, and tokens of decoding and prefill together.
  std::int64_t max_num_seqs = 256;
  std::int64_t max_num_batched_tokens = 8192;
  std::int64_t block_size = 16;  // positions per KV page, a multiple of 16 (AT-1)
  bool enable_prefix_caching = true;
  // Batch sizes that are recorded as CUDA graphs; no effect on a CPU, like async_scheduling.
  std::vector<std::int64_t> cudagraph_capture_sizes{1, 2, 4, 8, 16, 32};
  bool async_scheduling = true;
};

// How the validation prompts are completed.
struct EvalSpec {
  std::int64_t n = 1;      // completions of each prompt
  double temperature = 0;  // 0: greedy
  double top_p = 1.0;
  std::int64_t top_k = 0;  // 0: off
  bool greedy = false;     // one greedy completion beside the n sampled ones
};

}  // namespace tandem::cli
