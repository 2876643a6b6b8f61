// Cuts a rank's share of a batch into micro-batches: packed forward passes of at most rows_max
// token rows, in which a group's prompt is computed once for all of its trajectories.
//
// A trajectory of T completion tokens has T - 1 rows, because its last token predicts no trained
// token, and T items; the prompt's last row predicts every trajectory's first token.
//
//   PK-1  Every trajectory of the share is in exactly one micro-batch, whole, in order.
//   PK-2  No micro-batch has more than rows_max rows, nor more than rows_max items.
//   PK-3  A group's prompt is repeated only if the group alone breaks PK-2.
//   PK-4  Which rank computes a group depends on the number of ranks and on which groups of the
//         batch are chosen, and not on the content of the groups.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "actors/learner/learner_config.h"
#include "actors/learner/train_batch.h"
#include "actors/model/decoder.h"
#include "runtime/base/result.h"

namespace tandem::learner {

// Owns its arrays; view() borrows them for the decoder.
struct MicroBatch {
  std::vector<std::int32_t> tokens;  // [T] rows
  std::vector<kernels::Segment> segments;
  std::vector<model::LogprobItem> items;     // [M] one per completion token, sequences in order
  std::vector<std::int32_t> sequences;       // [S] PromptGroup::indices of the sequences
  std::vector<std::int32_t> sequence_begin;  // [S + 1] their items: begin[s] … begin[s + 1] - 1
  model::PackedBatch view(float temperature) const {
    return {tokens, segments, items, temperature};
  }
};

// A prompt and the completions that continue it.
struct PromptGroup {
  std::span<const std::int32_t> prompt;
  std::vector<std::span<const std::int32_t>> completions;
  std::vector<std::int32_t> indices;  // for each completion its trajectory's place in the batch
};

// A group is added to a micro-batch only if the result has at most this many rows. On a CPU the
// activations of more rows leave the cache (quickstart model, 38-token answers: 117k tokens/s at
// 512 rows, 82k at 8192). A GPU is used better with more rows.
constexpr std::int64_t rows_target(device::DeviceKind device, std::int64_t rows_max) {
  return device == device::DeviceKind::kCpu && rows_max > 512 ? 512 : rows_max;
}

// kInfeasible if one prompt and completion alone have more rows than rows_max.
Result<std::vector<MicroBatch>> pack(std::span<const PromptGroup> groups, std::int64_t rows_max,
                                     device::DeviceKind device = device::DeviceKind::kCpu);

// The share of `rank` among `ranks` in the chosen groups: every ranks-th of them. The result
// borrows from `batch`.
std::vector<PromptGroup> share_of(const TrainBatch& batch, const std::vector<bool>& chosen,
                                  int rank, int ranks);

// The largest sizes that pack() can produce, for TrainDecoder's memory.
model::TrainLimits pack_limits(const TrainerConfig& config);

}  // namespace tandem::learner
