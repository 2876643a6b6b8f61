// Sum of squares of a flat range in double, for the norm of a gradient:
//
//   *sum += sum_i x[i]^2
//
// Each block of kNormBlockElements is summed over 8 lanes, i ascending, and the blocks' sums are
// added ascending, so the result depends neither on threads nor on the device. The result depends
// on where a range begins, because its blocks begin there: callers whose results must agree use the
// same ranges. x is f32; the workspace and the sum are in the device's memory.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/operand.h"

namespace tandem::kernels {

inline constexpr std::int64_t kNormBlockElements = 4096;

struct SumOfSquares {
  TensorView x;                 // [n]
  std::span<double> workspace;  // sum_of_squares_workspace(n) or more, overwritten
  double* sum = nullptr;        // accumulated (+=)
};

// One double for each block.
std::int64_t sum_of_squares_workspace(std::int64_t elements);

void sum_of_squares(const Stream& stream, const SumOfSquares& op);

}  // namespace tandem::kernels
