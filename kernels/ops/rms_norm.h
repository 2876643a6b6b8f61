// Root-mean-square normalisation over the last dimension, forward and backward
// (Zhang and Sennrich, NeurIPS 2019).
//
//   y[r,c] = x[r,c] * inv_rms[r] * weight[c]       inv_rms[r] = 1 / sqrt(mean_c(x[r,c]^2) + eps)
//
// R rows, C channels. A tensor is [R, C], or [T, H, C] with R = T * H (q/k-norm: one row per token
// and head); inv_rms is [R] or [T, H] likewise, dense. x, y, add, weight, dy and dx share one
// dtype, f32 or bf16; inv_rms, dweight and the workspace are f32. In bf16 the sum x + add is
// rounded before it is normalised.
//
// The sums of a row are one tree whose form depends on C alone, so a row's result does not depend
// on other rows: on a CPU 16 lanes, channels ascending, then halves; on a GPU the packs and lanes
// of cuda/numbers.cuh and reduce.cuh.
#pragma once

#include "kernels/operand.h"

namespace tandem::kernels {

struct RmsNorm {
  TensorView x;        // [R, C]  updated when `add` is given
  TensorView weight;   // [C]
  TensorView y;        // [R, C]  written; may be x itself if add is empty
  TensorView inv_rms;  // [R]     written for backward; empty where no backward pass follows
  float eps = 0;       // from the checkpoint's config: there is no good default
  TensorView add;      // [R, C]  x += add comes first (a residual branch); or empty
};

struct RmsNormBackward {
  TensorView dy;       // [R, C]
  TensorView x;        // [R, C]  the forward input, `add` included
  TensorView weight;   // [C]
  TensorView inv_rms;  // [R]     as forward wrote it
  TensorView dx;       // [R, C]  kAdd: added to the gradient of the residual branch, which is there
                       //         already; kWrite: written, and may be dy itself
  Output output = Output::kAdd;
  TensorView dweight;    // [C]   accumulated (+=): rows in blocks, then blocks, each in a
                         //       fixed order
  TensorView workspace;  // [rms_norm_workspace(device, R, C)] f32
};

// dweight is summed within blocks of rows, and then over the blocks. The number of rows in a block
// is fixed, so that dweight does not depend on threads. A GPU cuts into smaller blocks, so that
// there are more blocks than it has processors.
inline constexpr std::int64_t kNormRowsPerBlock = 256;    // on a CPU
inline constexpr std::int64_t kNormNarrowChannels = 256;  // on a GPU: up to here a warp takes a row
constexpr std::int64_t norm_rows_on_gpu(std::int64_t channels) {
  return channels <= kNormNarrowChannels ? 32 : 8;
}
// Elements of the backward workspace: a dweight for each block of rows.
std::int64_t rms_norm_workspace(device::DeviceKind device, std::int64_t rows,
                                std::int64_t channels);

void rms_norm(const Stream& stream, const RmsNorm& op);
void rms_norm(const Stream& stream, const RmsNormBackward& op);

}  // namespace tandem::kernels
