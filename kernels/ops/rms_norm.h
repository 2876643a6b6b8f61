// Root-mean-square normalisation over the last dimension, forward and backward
// (Zhang and Sennrich, NeurIPS 2019).
//
//   y[r,c] = x[r,c] * inv_rms[r] * weight[c]       inv_rms[r] = 1 / sqrt(mean_c(x[r,c]^2) + eps)
//
// R rows, C channels. A tensor is [R, C], or [T, H, C] with R = T * H (q/k-norm: one row per token
// and head); inv_rms is [R] or [T, H] likewise, dense. f32.
//
// A row's sums run over 16 lanes, channels ascending, then halve; they see that row alone.
#pragma once

#include "kernels/operand.h"

namespace tandem::kernels {

struct RmsNorm {
  TensorView x;        // [R, C]  updated when `add` is given
  TensorView weight;   // [C]
  TensorView y;        // [R, C]  written; may be x itself if add is empty
  TensorView inv_rms;  // [R]     written for backward; empty when only inferring
  float eps = 0;       // from the checkpoint's config: there is no good default
  TensorView add;      // [R, C]  x += add comes first (a residual branch); or empty
};

struct RmsNormBackward {
  TensorView dy;       // [R, C]
  TensorView x;        // [R, C]  the forward input, `add` included
  TensorView weight;   // [C]
  TensorView inv_rms;  // [R]     as forward wrote it
  TensorView dx;       // [R, C]  kAdd: the residual branch adds here too; kWrite: may be dy itself
  Output output = Output::kAdd;
  TensorView dweight;    // [C]   accumulated (+=): rows ascending in blocks of kNormRowsPerBlock,
                         //       then blocks ascending
  TensorView workspace;  // [rms_norm_workspace(R, C)]
};

// Rows whose weight gradient is summed before blocks are added up: fixed, so that dweight does not
// depend on threads.
inline constexpr std::int64_t kNormRowsPerBlock = 256;
std::int64_t rms_norm_workspace(std::int64_t rows, std::int64_t channels);  // f32 elements

void rms_norm(const Stream& stream, const RmsNorm& op);
void rms_norm(const Stream& stream, const RmsNormBackward& op);

}  // namespace tandem::kernels
