// The configuration of an engine (engine.h). Plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "actors/rollout/truncation.h"
#include "kernels/ops/matmul.h"
#include "runtime/base/enum_names.h"

namespace tandem::rollout {

enum class KvOnUpdate : std::uint8_t {
  kKeep,       // running sequences go on with keys and values of older versions; spans tell
  kRecompute,  // their keys and values are computed anew by the new version
};
constexpr auto enum_names(KvOnUpdate) {
  using enum KvOnUpdate;
  return enum_name_rows<KvOnUpdate>({{kKeep, "keep"}, {kRecompute, "recompute"}});
}

// The least temperature above 0: logits divided by a smaller one may overflow a 32-bit float.
inline constexpr double kTemperatureMin = 1e-6;

// The keys of a job's section `rollout` that say how tokens are sampled. The defaults leave the
// distribution whole, since the ratios of the loss are of the whole distribution.
struct SamplingParams {
  double temperature = 1.0;  // at least kTemperatureMin
  double top_p = 1.0;
  std::int64_t top_k = 0;  // 0: off
  double min_p = 0.0;
  std::int64_t min_tokens = 0;  // no end before so many sampled tokens
  // Texts and tokens that end a completion, beside the end tokens of the model.
  std::vector<std::string> stop;
  std::vector<std::int64_t> stop_token_ids;
};

// The keys of a job's section `rollout` that bound an engine and choose how it works. A job file
// keeps each number within 32 bits.
struct EngineArgs {
  // Bounds of one forward pass: sequences that decode, and tokens of decoding and prefill together.
  std::int64_t max_num_seqs = 256;
  std::int64_t max_num_batched_tokens = 8192;
  std::int64_t block_size = 16;  // positions per KV page, a multiple of 16 (AT-1)
  bool enable_prefix_caching = true;
  // A GPU records the decode step of each of these numbers of sequences once and replays it; a
  // smaller batch is padded to the next size. Nothing is recorded where the list is empty, or on a
  // CPU.
  std::vector<std::int64_t> cudagraph_capture_sizes{1, 2, 4, 8, 16, 32};
  // True: a step is planned and queued while the one before it computes, for a device that computes
  // beside its host. Tokens are then known one step() later, and results that were computed for a
  // sequence beyond its end are discarded.
  bool async_scheduling = true;
};

// The keys of a job that an engine reads, each with the name of its key, and the place it has. The
// job file's reference says what each key means.
struct EngineConfig {
  SamplingParams sampling;
  EngineArgs args;
  std::int32_t max_prompt_length = 64;           // tokens
  Truncation truncation = Truncation::kDiscard;  // of longer prompts
  std::int32_t max_response_length = 64;         // tokens
  bool partial_rollout = true;  // false: an update waits until running sequences are done
  KvOnUpdate kv_on_update = KvOnUpdate::kKeep;
  double evaluation_share = 0.5;  // (0, 1] of max_num_seqs, while groups of the same version wait
  std::size_t kv_memory_bytes = std::size_t{64} << 20;  // at most; no more than it can use
  // Whether a GPU's product gives a row the same bits whatever other rows are computed with it
  // (kernels/ops/matmul.h).
  kernels::Rows products = kernels::Rows::kInvariant;
  bool weights_arrive_on_device = false;  // the sink is in the GPU's memory, not the host's
};

// The completions of evaluations that may run while groups wait, at least 1.
std::int64_t evaluation_seqs(const EngineConfig& config);

}  // namespace tandem::rollout
