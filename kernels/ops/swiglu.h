// SwiGLU (Shazeer, 2020), forward and backward, on one buffer with gate and up side by side.
//
//   y[t,f] = silu(x[t,f]) * x[t,F + f]        silu(g) = g * sigmoid(g) = g / (1 + exp(-g))
//
// T tokens, F intermediate channels. All operands of a call have one dtype, f32 or bf16. One buffer
// holds both halves because one product with the joined weights of gate and up computes them.
#pragma once

#include "kernels/operand.h"

namespace tandem::kernels {

struct Swiglu {
  TensorView x;  // [T, 2F] gate | up
  TensorView y;  // [T, F]  written
};

struct SwigluBackward {
  TensorView dy;  // [T, F]
  TensorView x;   // [T, 2F] the forward input
  TensorView dx;  // [T, 2F] written; may be x itself
};

void swiglu(const Stream& stream, const Swiglu& op);
void swiglu(const Stream& stream, const SwigluBackward& op);

}  // namespace tandem::kernels
