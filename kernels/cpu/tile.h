// The inner product that matmul and attention are made of: a block of outputs held in registers,
// for each of which the terms t = 0, 1, ... are one chain of fused multiply-adds. In f32:
//
//   chain(s) = fma(a[i, t], b[t, j], ... fma(a[i, 1], b[1, j], fma(a[i, 0], b[0, j], s)))
//
// In bf16 a step takes a pair of terms, the odd one before the even one; an operand or a result
// that is denormal counts as zero:
//
//   chain(s) = ... fma(a[i, 2], b[2, j], fma(a[i, 3], b[3, j],
//                  fma(a[i, 0], b[0, j], fma(a[i, 1], b[1, j], s))))
//
// The enumeration Sum says from which value s the chain starts and how it is stored.
//
// a is any strided matrix, b has rows of contiguous columns in groups of 32 (a packed weight's
// panels, or one matrix if the group stride is 32). How rows and columns are cut into tiles does
// not change the bits of any output. A product runs in the calling thread alone.
#pragma once

#include <cstdint>

#include "kernels/cpu/element.h"

namespace tandem::kernels::TANDEM_CPU_ISA {

// Terms of a step, which lie side by side in a and in b.
template <class T>
inline constexpr std::int64_t kTerms = 1;
template <>
inline constexpr std::int64_t kTerms<Bf16> = 2;

enum class Sum : std::uint8_t {
  kWrite,     // c = chain(0)
  kContinue,  // c = chain(c): two calls of steps give the bits of one call with all of them
  kAdd,       // c = c + chain(0), one rounded addition at the store
};

// Memory that is read soon after a product. Each tile prefetches the next rows_per_tile rows of it.
struct Ahead {
  const char* data = nullptr;
  std::int64_t row = 0;        // bytes from row to row
  std::int64_t row_lines = 0;  // cache lines of a row
  std::int64_t rows = 0;       // not yet prefetched
  std::int64_t rows_per_tile = 0;
};

// T is float or Bf16; strides are in elements of T.
template <class T>
struct Product {
  const T* a = nullptr;
  std::int64_t a_row = 0;   // from row i to i + 1
  std::int64_t a_step = 0;  // from step to step
  const T* b = nullptr;
  std::int64_t b_step = 0;                // from step to step
  std::int64_t b_group = 32 * kTerms<T>;  // from column 32 g to 32 (g + 1)
  float* c = nullptr;
  std::int64_t c_row = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;  // b is readable up to the next multiple of 16
  std::int64_t steps = 0;
  Sum sum = Sum::kWrite;
  Ahead* ahead = nullptr;  // null, or two; each tile advances them
};

void multiply(const Product<float>& product);
void multiply(const Product<Bf16>& product);
// The product of pairs whose terms have been widened to two steps, the odd term before the even
// one: its sums have the bits that the product of these pairs has.
void multiply_widened(const Product<float>& product);

}  // namespace tandem::kernels::TANDEM_CPU_ISA
