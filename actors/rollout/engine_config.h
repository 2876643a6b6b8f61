// The configuration of an engine (engine.h). Plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/ops/matmul.h"

namespace tandem::actors {

enum class KvOnUpdate : std::uint8_t {
  kKeep,       // running sequences go on with keys and values of older versions; spans tell
  kRecompute,  // their keys and values are computed anew by the new version
};

// The rollout.* and async.* keys of a job, and those data.* keys that bound lengths. A field has
// the name of its key, and the job file's reference says what each key means.
struct EngineConfig {
  float temperature = 1.0f;  // > 0
  float top_p = 1.0f;
  std::int32_t top_k = 0;
  float min_p = 0.0f;
  std::int32_t min_tokens = 0;
  std::vector<std::string> stop;
  std::vector<std::int32_t> stop_token_ids;  // beside the model's eos
  std::int32_t max_prompt_length = 64;       // tokens
  std::int32_t max_response_length = 64;     // tokens
  std::int32_t max_num_seqs = 256;
  std::int32_t max_num_batched_tokens = 8192;
  std::int32_t block_size = 16;  // positions per KV page
  bool enable_prefix_caching = true;
  bool partial_rollout = true;  // false: an update waits until running sequences are done
  KvOnUpdate kv_on_update = KvOnUpdate::kKeep;
  std::size_t kv_memory_bytes = std::size_t{64} << 20;  // at most; no more than it can use
  // A GPU records the decode step of each of these numbers of sequences once and replays it; a
  // smaller batch is padded to the next size. Nothing is recorded where the list is empty, or on a
  // CPU.
  std::vector<std::int32_t> cudagraph_capture_sizes;
  // True: a step is planned and queued while the one before it computes, for a device that computes
  // beside its host. Tokens are then known one step() later, and results that were computed for a
  // sequence beyond its end are discarded.
  bool async_scheduling = false;
  // Whether a GPU's product gives a row the same bits whatever other rows are computed with it
  // (kernels/ops/matmul.h).
  kernels::Rows products = kernels::Rows::kInvariant;
  bool weights_arrive_on_device = false;  // the sink is in the GPU's memory, not the host's
};

}  // namespace tandem::actors
