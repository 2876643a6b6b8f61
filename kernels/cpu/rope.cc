#include "kernels/ops/rope.h"

#include "kernels/cpu/operators.h"
#include "kernels/cpu/simd.h"
#include "runtime/device/parallel.h"

namespace tandem::kernels::TANDEM_CPU_ISA {

namespace {
constexpr std::int64_t kTokensPerRange = 256;

template <class T>
void turn(const Stream& stream, const Rope& op) {
  const std::int64_t heads = op.x.dim(1), half = op.x.dim(2) / 2;
  const std::int32_t* positions = op.positions.i32();
  // The turn by -p: cos(-a) = cos(a), sin(-a) = -sin(a).
  const F32x16 sign = set(op.direction == Direction::kForward ? 1.0f : -1.0f);
  device::parallel_for(
      stream.pool, op.x.dim(0), kTokensPerRange, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t t = begin; t < end; ++t) {
          const float* cosines = op.cos.f32() + positions[t] * half;
          const float* sines = op.sin.f32() + positions[t] * half;
          T* token = data<T>(op.x) + t * op.x.row_stride;
          for (std::int64_t i = 0; i < half; i += kLanes) {
            const int n = lanes(half - i);
            const F32x16 cos = load(cosines + i, n), sin = load(sines + i, n) * sign;
            // All heads of a token turn by the same angles, which are loaded once.
            for (std::int64_t h = 0; h < heads; ++h) {
              T* low = token + h * 2 * half + i;
              T* high = low + half;
              const F32x16 a = load(low, n), b = load(high, n);
              store(low, fnma(b, sin, a * cos), n);
              store(high, fma(a, sin, b * cos), n);
            }
          }
        }
      });
}

}  // namespace

void rope(const Stream& stream, const Rope& op) {
  with_type(op.x.dtype, [&]<class T>(T) { turn<T>(stream, op); });
}

}  // namespace tandem::kernels::TANDEM_CPU_ISA
