// Elementwise arithmetic on flat ranges of n elements (dense), f32, or bf16 on a GPU.
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

void add(const Stream& stream, const Add& op);
void scale(const Stream& stream, const Scale& op);

}  // namespace tandem::kernels
