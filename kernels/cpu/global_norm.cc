#include "kernels/ops/global_norm.h"

#include "kernels/cpu/operators.h"
#include "runtime/device/parallel.h"

namespace tandem::kernels::TANDEM_CPU_ISA {

// This is plain double arithmetic without simd.h: the order of the eight sums and of their tree is
// stated here, and cuda/global_norm.cu repeats it. A range is one block, so each block has one
// writer.
void sum_of_squares(const Stream& stream, const SumOfSquares& op) {
  constexpr std::int64_t kSums = 8;
  const std::int64_t elements = op.x.dim(0);
  const float* x = op.x.f32();
  double* blocks = op.workspace.data();
  device::parallel_for(stream.pool, elements, kNormBlockElements,
                       [&](std::int64_t begin, std::int64_t end) {
                         double sums[kSums] = {};
                         std::int64_t i = begin;
                         for (; i + kSums <= end; i += kSums) {
                           for (std::int64_t j = 0; j < kSums; ++j) {
                             const double value = x[i + j];
                             sums[j] += value * value;
                           }
                         }
                         for (std::int64_t j = 0; i < end; ++i, ++j) {
                           const double value = x[i];
                           sums[j] += value * value;
                         }
                         for (std::int64_t half = kSums / 2; half > 0; half /= 2) {
                           for (std::int64_t j = 0; j < half; ++j) sums[j] += sums[j + half];
                         }
                         blocks[begin / kNormBlockElements] = sums[0];
                       });
  // The caller's sum is added to last, so that the sum of a range does not depend on it.
  double sum = 0;
  for (std::int64_t begin = 0; begin < elements; begin += kNormBlockElements) {
    sum += blocks[begin / kNormBlockElements];
  }
  *op.sum += sum;
}

}  // namespace tandem::kernels::TANDEM_CPU_ISA
