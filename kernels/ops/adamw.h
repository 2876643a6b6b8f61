// AdamW (Loshchilov and Hutter, ICLR 2019) on flat ranges of f32, PyTorch's order of operations.
//
//   g = grad_scale * grad
//   m = m + (1 - beta1) * (g - m)          v = beta2 * v + (1 - beta2) * g^2
//   p = p * (1 - lr * weight_decay)
//   p = p - lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + eps)
//
// n elements, elementwise: any cut of a range gives the same bits. lr = 0 leaves p untouched to
// the bit (m and v move on). Where the model computes with bf16 weights, p is their master, and
// `rounded` is what the model reads: p to the nearest bf16, ties to even.
#pragma once

#include <cstdint>

#include "kernels/operand.h"

namespace tandem::kernels {

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
  TensorView rounded;    // [n] bf16, on a GPU, written; or empty
};

void adamw(const Stream& stream, const AdamW& op);

}  // namespace tandem::kernels
