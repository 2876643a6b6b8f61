#include "kernels/ops/sum_pieces.h"

#include "kernels/cpu/operators.h"
#include "kernels/cpu/simd.h"
#include "runtime/device/parallel.h"

namespace tandem::kernels::TANDEM_CPU_ISA {

namespace {
constexpr std::int64_t kSumsPerRange = 16384;
}  // namespace

void sum_pieces(const Stream& stream, const SumPieces& op) {
  const TensorView* const pieces = op.pieces.data();
  const auto count = static_cast<std::int64_t>(op.pieces.size());
  float* out = op.out.f32();
  device::parallel_for(stream.pool, op.out.dim(0), kSumsPerRange,
                       [&](std::int64_t begin, std::int64_t end) {
                         for (std::int64_t i = begin; i < end; i += kLanes) {
                           const int n = lanes(end - i);
                           // All pieces are loaded before `out`, which may be one of them, is
                           // written.
                           F32x16 sum = load(pieces[0].f32() + i, n);
                           for (std::int64_t p = 1; p < count; ++p)
                             sum = sum + load(pieces[p].f32() + i, n);
                           store(out + i, sum, n);
                         }
                       });
}

}  // namespace tandem::kernels::TANDEM_CPU_ISA
