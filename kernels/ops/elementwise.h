// Elementwise arithmetic on flat ranges of n elements (dense), f32 or bf16; and conversion between
// the two dtypes. In bf16 an element is widened, computed with in f32 and rounded once.
#pragma once

#include "kernels/operand.h"

namespace tandem::kernels {

struct Add {
  TensorView x;  // [n] of y's dtype
  TensorView y;  // [n] y += x
};

struct Scale {
  TensorView y;  // [n] y *= factor
  float factor = 1;
};

// Rounds to nearest, ties to even; NaN stays NaN. With one dtype on both sides it copies the bits.
struct Convert {
  TensorView x;  // [n] f32 or bf16
  TensorView y;  // [n] f32 or bf16, written; shares no memory with x
};

// Elements do not depend on each other, so the bits are the same on every device and for every cut
// of a range.
void add(const Stream& stream, const Add& op);
void scale(const Stream& stream, const Scale& op);
void convert(const Stream& stream, const Convert& op);

}  // namespace tandem::kernels
