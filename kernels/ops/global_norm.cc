#include "kernels/ops/global_norm.h"

#include "kernels/backend.h"

namespace tandem::kernels {

std::int64_t sum_of_squares_workspace(std::int64_t elements) {
  return (elements + kNormBlockElements - 1) / kNormBlockElements;
}

void sum_of_squares(const Stream& stream, const SumOfSquares& op) {
  CHECK(is_f32(op.x, {op.x.dim(0)}));
  CHECK(std::ssize(op.workspace) >= sum_of_squares_workspace(op.x.dim(0)));
  // The sum is in the device's memory, so the host checks no more than that it is given.
  CHECK(op.sum != nullptr);
  backend(stream.device).sum_of_squares(stream, op);
}

}  // namespace tandem::kernels
