// What TrainDecoder keeps of one batch, and how memory is cut for it. Internal to decoder.h.
//
// Letters as there; C rows of one chunk of logits, S segments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "actors/model/decoder.h"
#include "actors/model/decoder_parts.h"
#include "actors/model/model_config.h"
#include "kernels/ops/attention.h"
#include "runtime/device/stream.h"
#include "runtime/device/tensor_view.h"

namespace tandem::actors {

// What backward needs of one layer. With checkpointing all layers share one memory but for x.
struct LayerActivations {
  runtime::TensorView x, inv, h;     // [T, H] [T] [T, H]  into attention: residual, its norm
  runtime::TensorView qkv;           // [T, Q]  before q/k-norm
  runtime::TensorView inv_q, inv_k;  // [T, A] [T, B]  of a model with q/k-norm
  // [T, A D] [T, B D], normalised and turned; without q/k-norm the columns of qkv, turned there
  runtime::TensorView q, k;
  runtime::TensorView attention, lse;  // [T, A D] [T, A]
  runtime::TensorView x2, inv2, h2;    // [T, H] [T] [T, H]  into the MLP
  runtime::TensorView gate_up, act;    // [T, 2 F] [T, F]
};

struct TrainBuffers {
  std::vector<LayerActivations> layers;
  runtime::TensorView x;    // [T, H] the last residual
  runtime::TensorView lse;  // [M]
  // Of one chunk: [C, H] [C] [C, H] [C, V]; logits are f32
  runtime::TensorView picked, picked_inv, picked_h, logits;
  runtime::TensorView dlogits;                    // [C, V] of f32: logits itself
  runtime::TensorView dx, dh;                     // [T, H]
  runtime::TensorView dx_sums;                    // [T, H] f32; of f32: dx itself
  runtime::TensorView dqkv, dattention, dact;     // [T, Q] [T, A D] [T, F]
  runtime::TensorView dpicked;                    // [C, H]
  runtime::TensorView norm_sums, attention_sums;  // workspaces of rms_norm and attention
};

// Filled on the host for each call, and checked there: operators on a GPU cannot look at segments.
struct TrainTables {
  std::span<std::int32_t> tokens, positions;        // [T]
  runtime::TensorView ones;                         // [T, 1] of a model with biases
  std::span<std::int32_t> item_rows, item_targets;  // [M]
  std::span<kernels::Segment> segments;             // [S], at most one per row
};

// [M] each: a log-probability's number and an entropy's.
struct PerItem {
  runtime::TensorView logprob, entropy;
};

std::int64_t logit_rows_per_chunk(const ModelConfig& config, runtime::DeviceKind device);

// Cuts for exactly so many rows and items; `buffers.layers` keeps its memory from call to call.
void cut_train_buffers(BufferCutter& cut, const ModelConfig& config, runtime::DeviceKind device,
                       const TrainLimits& limits, TrainBuffers& buffers);
std::size_t train_buffer_bytes(const ModelConfig& config, const TrainLimits& limits,
                               runtime::DeviceKind device);

TrainTables cut_train_tables(BufferCutter& cut, const ModelConfig& config, std::int64_t T,
                             std::int64_t M, std::int64_t S);
std::size_t train_table_bytes(const ModelConfig& config, const TrainLimits& limits);

PerItem cut_per_item(BufferCutter& cut, std::int64_t M);
std::size_t per_item_bytes(std::int64_t M, bool with_entropy);

}  // namespace tandem::actors
