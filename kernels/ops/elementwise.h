// Elementwise arithmetic on flat ranges of n elements (dense), f32 or bf16; and conversion between
// the two dtypes.
#pragma once

#include "kernels/operand.h"

namespace tandem::kernels {

struct Add {
  TensorView x;  // [n]
  TensorView y;  // [n] y += x
};

struct Scale {
  TensorView y;  // [n] y *= factor
  float factor = 1;
};

// To the nearest, ties to even; NaN stays NaN. With one dtype on both sides a copy of the bits.
struct Convert {
  TensorView x;  // [n] f32 or bf16, on any device
  TensorView y;  // [n] f32 or bf16, written; shares no memory with x
};

void add(const Stream& stream, const Add& op);
void scale(const Stream& stream, const Scale& op);
void convert(const Stream& stream, const Convert& op);

}  // namespace tandem::kernels
