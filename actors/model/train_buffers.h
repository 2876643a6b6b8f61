// The memory of TrainDecoder: the activations that it keeps of one batch, its workspaces and
// tables, and how blocks of memory are cut into them. Internal to decoder.h.
//
// Letters as in decoder.h; C rows of one chunk of logits, S segments. Shapes are written beside the
// names in the same order.
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

namespace tandem::model {

// The results of one layer's forward that backward needs. With checkpointing all layers share the
// same memory for everything except x, and backward computes them again from x.
struct LayerActivations {
  device::TensorView x, inv, h;     // [T, H] [T] [T, H]  into attention: residual, its norm
  device::TensorView qkv;           // [T, Q]  before q/k-norm
  device::TensorView inv_q, inv_k;  // [T, A] [T, B]  of a model with q/k-norm
  // [T, A D] [T, B D], normalised and rotated. Without q/k-norm they are views of qkv's columns,
  // which are rotated in place.
  device::TensorView q, k;
  device::TensorView attention, lse;  // [T, A D] [T, A]
  device::TensorView x2, inv2, h2;    // [T, H] [T] [T, H]  into the MLP
  device::TensorView gate_up, act;    // [T, 2 F] [T, F]
};

struct TrainBuffers {
  std::vector<LayerActivations> layers;
  device::TensorView x;    // [T, H] the last residual
  device::TensorView lse;  // [M]
  // One chunk has [C, H] [C] [C, H] [C, V]; logits are f32 in every dtype.
  device::TensorView picked, picked_inv, picked_h, logits;
  device::TensorView dlogits;                    // [C, V]; when computing in f32, logits itself
  device::TensorView dx, dh;                     // [T, H]
  device::TensorView dx_sums;                    // [T, H] f32; when computing in f32, dx itself
  device::TensorView dqkv, dattention, dact;     // [T, Q] [T, A D] [T, F]
  device::TensorView dpicked;                    // [C, H]
  device::TensorView norm_sums, attention_sums;  // workspaces of rms_norm and attention
};

// Filled on the host for each call, and checked there: operators on a GPU cannot check segments.
struct TrainTables {
  std::span<std::int32_t> tokens, positions;        // [T]
  device::TensorView ones;                          // [T, 1]; empty in a family without biases
  std::span<std::int32_t> item_rows, item_targets;  // [M]
  std::span<kernels::Segment> segments;             // [S], at most one per row
};

// One float per item for log-probabilities and one for entropies: values in forward, their
// derivatives in backward.
struct PerItem {
  device::TensorView logprob, entropy;
};

// How many rows of logits are computed at a time. The logits of all items would take M V floats,
// which is often more than all activations together.
std::int64_t logit_rows_per_chunk(const ModelConfig& config, device::DeviceKind device);

// Cuts for exactly limits.rows_max rows and limits.items_max items; a call with a smaller batch
// passes smaller limits and uses the beginning of the same block. The vector `buffers.layers` keeps
// its capacity from call to call (DE-3).
void cut_train_buffers(BufferCutter& cut, const ModelConfig& config, device::DeviceKind device,
                       const TrainLimits& limits, TrainBuffers& buffers);
std::size_t train_buffer_bytes(const ModelConfig& config, const TrainLimits& limits,
                               device::DeviceKind device);

// The tables of T rows, M items and S segments; the segments' content is left as it is.
TrainTables cut_train_tables(BufferCutter& cut, const ModelConfig& config, std::int64_t T,
                             std::int64_t M, std::int64_t S);
std::size_t train_table_bytes(const ModelConfig& config, const TrainLimits& limits);

PerItem cut_per_item(BufferCutter& cut, std::int64_t M);
std::size_t per_item_bytes(std::int64_t M, bool with_entropy);

}  // namespace tandem::model
