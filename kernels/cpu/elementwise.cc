#include "kernels/cpu/operators.h"
#include "kernels/cpu/simd.h"
#include "runtime/device/parallel.h"

namespace tandem::kernels::TANDEM_CPU_ISA {

namespace {
constexpr std::int64_t kElementsPerRange = 32768;
}  // namespace

void add(const Stream& stream, const Add& op) {
  const float* x = op.x.f32();
  float* y = op.y.f32();
  runtime::parallel_for(stream.pool, op.y.dim(0), kElementsPerRange,
                        [&](std::int64_t begin, std::int64_t end) {
                          for (std::int64_t i = begin; i < end; i += kLanes) {
                            const int n = lanes(end - i);
                            store(y + i, load(y + i, n) + load(x + i, n), n);
                          }
                        });
}

void scale(const Stream& stream, const Scale& op) {
  float* y = op.y.f32();
  const F32x16 factor = set(op.factor);
  runtime::parallel_for(stream.pool, op.y.dim(0), kElementsPerRange,
                        [&](std::int64_t begin, std::int64_t end) {
                          for (std::int64_t i = begin; i < end; i += kLanes) {
                            const int n = lanes(end - i);
                            store(y + i, load(y + i, n) * factor, n);
                          }
                        });
}

}  // namespace tandem::kernels::TANDEM_CPU_ISA
