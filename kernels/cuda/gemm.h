// Matrix products as matmul.cu states them, by rows, and the library that computes most of them.
#pragma once

#include "kernels/ops/matmul.h"

namespace tandem::kernels::cuda {

//   c[i, j] = (c[i, j] or 0) + sum_t a[i, t] * b[t, j]
// a and b share a floating dtype, c has the same or f32; sums are f32.
struct Gemm {
  TensorView a;  // [rows, steps], or [steps, rows] if transposed
  TensorView b;  // [steps, columns], or [columns, steps] if transposed
  TensorView c;  // [rows, columns]
  bool a_transposed = false;
  bool b_transposed = false;
  bool accumulate = false;
  Rows rows = Rows::kInvariant;

  std::int64_t steps() const { return a.dim(a_transposed ? 0 : 1); }
};

// By cuBLASLt. False, with nothing done, for a product that is not for it: one that is empty, that
// has an operand whose rows do not all begin at multiples of 16 bytes, or that no algorithm is
// known to compute as Gemm::rows wants it. With Rows::kInvariant the answer does not depend on the
// number of rows.
bool library_gemm(const Stream& stream, const Gemm& gemm);

}  // namespace tandem::kernels::cuda
