#include "kernels/ops/elementwise.h"

#include "kernels/cpu/operators.h"
#include "kernels/cpu/simd.h"
#include "runtime/device/parallel.h"

namespace tandem::kernels::TANDEM_CPU_ISA {

namespace {

constexpr std::int64_t kElementsPerRange = 32768;

template <class T>
void add_elements(const Stream& stream, const Add& op) {
  const T* x = data<T>(op.x);
  T* y = data<T>(op.y);
  device::parallel_for(stream.pool, op.y.dim(0), kElementsPerRange,
                       [&](std::int64_t begin, std::int64_t end) {
                         for (std::int64_t i = begin; i < end; i += kLanes) {
                           const int n = lanes(end - i);
                           store(y + i, load(y + i, n) + load(x + i, n), n);
                         }
                       });
}

template <class T>
void scale_elements(const Stream& stream, const Scale& op) {
  T* y = data<T>(op.y);
  const F32x16 factor = set(op.factor);
  device::parallel_for(stream.pool, op.y.dim(0), kElementsPerRange,
                       [&](std::int64_t begin, std::int64_t end) {
                         for (std::int64_t i = begin; i < end; i += kLanes) {
                           const int n = lanes(end - i);
                           store(y + i, load(y + i, n) * factor, n);
                         }
                       });
}

template <class From, class To>
void convert_elements(const Stream& stream, const Convert& op) {
  const From* x = data<From>(op.x);
  To* y = data<To>(op.y);
  device::parallel_for(stream.pool, op.y.dim(0), kElementsPerRange,
                       [&](std::int64_t begin, std::int64_t end) {
                         for (std::int64_t i = begin; i < end; i += kLanes) {
                           const int n = lanes(end - i);
                           store(y + i, load(x + i, n), n);
                         }
                       });
}

// With one dtype on both sides bits are copied: a NaN keeps its payload.
template <class T>
void copy_elements(const Stream& stream, const Convert& op) {
  const T* x = data<T>(op.x);
  T* y = data<T>(op.y);
  device::parallel_for(stream.pool, op.y.dim(0), kElementsPerRange,
                       [&](std::int64_t begin, std::int64_t end) {
                         const auto elements = static_cast<std::size_t>(end - begin);
                         __builtin_memcpy(y + begin, x + begin, elements * sizeof(T));
                       });
}

}  // namespace

void add(const Stream& stream, const Add& op) {
  with_type(op.y.dtype, [&]<class T>(T) { add_elements<T>(stream, op); });
}

void scale(const Stream& stream, const Scale& op) {
  with_type(op.y.dtype, [&]<class T>(T) { scale_elements<T>(stream, op); });
}

void convert(const Stream& stream, const Convert& op) {
  if (op.x.dtype == op.y.dtype)
    return with_type(op.x.dtype, [&]<class T>(T) { copy_elements<T>(stream, op); });
  if (op.x.dtype == device::DType::kF32) return convert_elements<float, Bf16>(stream, op);
  convert_elements<Bf16, float>(stream, op);
}

}  // namespace tandem::kernels::TANDEM_CPU_ISA
