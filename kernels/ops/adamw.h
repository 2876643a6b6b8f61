// AdamW (Loshchilov and Hutter, ICLR 2019) on flat ranges of f32, PyTorch's order of operations.
//
//   g = grad_scale * grad
//   m = m + (1 - beta1) * (g - m)          v = beta2 * v + (1 - beta2) * g^2
//   p = p * (1 - lr * weight_decay)
//   p = p - lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + eps)
//
// n elements, elementwise: any cut of a range gives the same bits. lr = 0 leaves p untouched to
// the bit (m and v are updated all the same). Where the model computes with bf16 weights, p is the
// f32 master of these weights, and the model reads `rounded`: p to the nearest bf16, ties to even.
#pragma once

#include <cstdint>

#include "kernels/operand.h"

namespace tandem::kernels {

// Elements for which the workspace has one i32 of flags, one bit each.
inline constexpr std::int64_t kChangesPerWord = 32;
// Elements for which the workspace has one i32 more: the count of a GPU block's changes.
inline constexpr std::int64_t kChangesPerBlock = 8192;

// One optimizer step. The list of changed values tells which of the values in `rounded` differ from
// those before the step, so that an owner of a copy can be sent these alone. Its order is ascending
// and so the same in every run.
struct AdamW {
  TensorView parameters;  // [n] updated
  TensorView gradients;   // [n]
  TensorView m;           // [n] updated; zeros before the first step
  TensorView v;           // [n] updated; zeros before the first step
  std::int64_t step = 0;  // t: 1 for the first update
  double lr = 0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  float grad_scale = 1;  // clipping and averaging, in one factor
  TensorView rounded;    // [n] bf16, written; or empty
  // The list needs all three operands, or none is given. With them `rounded` must hold the values
  // of the step before on entry, and n must fit an i32.
  TensorView changed;        // [n] i32: indices into `rounded` whose bits changed, ascending; only
                             // the first *changed_count are written
  TensorView changed_count;  // [1] i32 written
  TensorView workspace;      // [adamw_workspace(n)] i32
};

// Elements of the workspace for a range of `elements`.
std::int64_t adamw_workspace(std::int64_t elements);

void adamw(const Stream& stream, const AdamW& op);

}  // namespace tandem::kernels
