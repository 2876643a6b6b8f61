// Matrix products in row-major form, as matmul.cu states them, and the library (cuBLASLt) that
// computes most of them.
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
  bool accumulate = false;  // c is added to
  Rows rows = Rows::kInvariant;

  std::int64_t steps() const { return a.dim(a_transposed ? 0 : 1); }  // terms of a sum
};

// Computes the product by cuBLASLt and returns true, or does nothing and returns false. A product
// is refused if it is empty, if an operand has rows that do not begin at multiples of 16 bytes, or
// if no algorithm is known that keeps the promise of Gemm::rows. With Rows::kInvariant the answer
// does not depend on the number of rows.
//
// The first product of a shape asks the library for algorithms, tries them on the GPU (kInvariant)
// and may allocate device memory. So a product may be recorded into a stream's graph only after it
// has run on that stream. Any thread may call; calls take turns. An error of the library ends the
// process.
bool library_gemm(const Stream& stream, const Gemm& gemm);

}  // namespace tandem::kernels::cuda
