// The inner product that matmul and attention are made of: a block of outputs held in registers,
// each one chain of fused multiply-adds.
//
//   c[i, j] = (c[i, j] or 0) + sum_t a[i, t] * b[t, j]       t ascending
//
// a is any strided matrix, b has rows of contiguous columns in groups of 32 (a packed weight's
// panels, or one matrix if the group stride is 32). How rows and columns are cut into tiles does
// not touch the value of any output.
#pragma once

#include <cstdint>

namespace tandem::kernels::TANDEM_CPU_ISA {

struct Product {
  const float* a = nullptr;
  std::int64_t a_row = 0;   // elements from row i to i + 1
  std::int64_t a_step = 0;  // elements from step t to t + 1
  const float* b = nullptr;
  std::int64_t b_step = 0;    // elements from step t to t + 1
  std::int64_t b_group = 32;  // elements from column 32 g to 32 (g + 1)
  float* c = nullptr;
  std::int64_t c_row = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;  // b is readable up to the next multiple of 16
  std::int64_t steps = 0;
  bool accumulate = false;
};

void multiply(const Product& product);

}  // namespace tandem::kernels::TANDEM_CPU_ISA
