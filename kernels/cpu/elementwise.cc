#include "kernels/cpu/operators.h"
#include "kernels/cpu/simd.h"
#include "runtime/device/parallel.h"

namespace tandem::kernels::TANDEM_CPU_ISA {

namespace {
constexpr std::int64_t kElementsPerRange = 32768;

// By dtype.h, element by element: no step computes with what these make.
void narrow(const float* from, std::uint16_t* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = runtime::f32_to_bf16(from[i]);
}

void widen(const std::uint16_t* from, float* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = runtime::bf16_to_f32(from[i]);
}
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

void convert(const Stream& stream, const Convert& op) {
  const auto x_size = static_cast<std::int64_t>(runtime::size_bytes(op.x.dtype));
  const auto y_size = static_cast<std::int64_t>(runtime::size_bytes(op.y.dtype));
  runtime::parallel_for(
      stream.pool, op.y.dim(0), kElementsPerRange, [&](std::int64_t begin, std::int64_t end) {
        const char* x = static_cast<const char*>(op.x.data) + begin * x_size;
        char* y = static_cast<char*>(op.y.data) + begin * y_size;
        if (op.x.dtype == op.y.dtype) {
          __builtin_memcpy(y, x, static_cast<std::size_t>((end - begin) * y_size));
        } else if (op.x.dtype == runtime::DType::kF32) {
          narrow(reinterpret_cast<const float*>(x), reinterpret_cast<std::uint16_t*>(y),
                 end - begin);
        } else {
          widen(reinterpret_cast<const std::uint16_t*>(x), reinterpret_cast<float*>(y),
                end - begin);
        }
      });
}

}  // namespace tandem::kernels::TANDEM_CPU_ISA
