// The sections of a job that say how completions are generated: `rollout`, for training, and
// `eval`. Parts of JobSpec (job_spec.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "actors/main/job/job_values.h"

namespace tandem::cli {

struct RolloutSpec {
  EngineName name = EngineName::kNative;
  std::int64_t replicas = 1;
  std::int64_t n = 8;  // trajectories per group
  double temperature = 1.0;
  double top_p = 1.0;
  std::int64_t top_k = 0;  // 0: off
  double min_p = 0.0;
  std::int64_t min_tokens = 0;
  std::vector<std::string> stop;
  std::vector<std::int64_t> stop_token_ids;
  std::int64_t tensor_model_parallel_size = 1;
  double gpu_memory_utilization = 0.5;  // share of the device memory (CPU: of the RAM) it may take
  std::int64_t max_num_seqs = 256;
  std::int64_t max_num_batched_tokens = 8192;
  std::int64_t block_size = 16;  // positions per KV page
  bool enable_prefix_caching = true;
  std::vector<std::int64_t> cudagraph_capture_sizes{1, 2, 4, 8, 16, 32};
  bool async_scheduling = true;
};

struct EvalSpec {
  std::int64_t n = 1;      // completions of each prompt
  double temperature = 0;  // 0: greedy
  double top_p = 1.0;
  std::int64_t top_k = 0;  // 0: off
  bool greedy = false;     // one greedy completion beside the n sampled ones
};

}  // namespace tandem::cli
