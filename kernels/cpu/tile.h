// The inner product that matmul and attention are made of: a block of outputs held in registers,
// for each of which the steps t = 0, 1, ... are one chain of fused multiply-adds,
//
//   chain(s) = fma(a[i, t], b[t, j], ... fma(a[i, 1], b[1, j], fma(a[i, 0], b[0, j], s)))
//
// The enumeration Sum says from which value s the chain starts and how it is stored.
//
// a is any strided matrix, b has rows of contiguous columns in groups of 32 (a packed weight's
// panels, or one matrix if the group stride is 32). How rows and columns are cut into tiles does
// not touch the value of any output.
#pragma once

#include <cstdint>

namespace tandem::kernels::TANDEM_CPU_ISA {

enum class Sum : std::uint8_t {
  kWrite,     // c = chain(0)
  kContinue,  // c = chain(c): two calls of steps give the bits of one call with all of them
  kAdd,       // c = c + chain(0), one rounded addition at the store
};

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
  Sum sum = Sum::kWrite;
};

void multiply(const Product& product);

}  // namespace tandem::kernels::TANDEM_CPU_ISA
