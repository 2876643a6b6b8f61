// A thread takes one pack of elements. The arithmetic is f32, and each element is rounded once.
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/numbers.cuh"
#include "kernels/cuda/operators.h"
#include "kernels/ops/elementwise.h"

namespace tandem::kernels::cuda {

namespace {

constexpr int kThreads = 256;

template <class T, bool kVector>
__global__ void add_kernel(const T* x, T* y, std::int64_t count) {
  const std::int64_t at = (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) * kPack<T>;
  if (at >= count) return;
  const Pack<T> more = load_pack<kVector>(x + at, count - at);
  Pack<T> sum = load_pack<kVector>(y + at, count - at);
  for (int i = 0; i < kPack<T>; ++i) sum.at[i] += more.at[i];
  store_pack<kVector>(y + at, sum, count - at);
}

template <class T, bool kVector>
__global__ void scale_kernel(T* y, float factor, std::int64_t count) {
  const std::int64_t at = (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) * kPack<T>;
  if (at >= count) return;
  Pack<T> scaled = load_pack<kVector>(y + at, count - at);
  for (int i = 0; i < kPack<T>; ++i) scaled.at[i] *= factor;
  store_pack<kVector>(y + at, scaled, count - at);
}

// Converts between f32 and bf16; a thread takes as many elements as a pack of f32 has.
template <class X, class Y, bool kVector>
__global__ void convert_kernel(const X* x, Y* y, std::int64_t count) {
  const std::int64_t at = (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) * kPack<float>;
  if (at >= count) return;
  store_pack<kVector>(y + at, load_pack<kVector, X, float>(x + at, count - at), count - at);
}

template <class T>
Launch over(std::int64_t count) {
  return {.grid = blocks_for(count, kThreads * kPack<T>), .block = kThreads};
}

}  // namespace

void add(const Stream& stream, const Add& op) {
  const std::int64_t count = op.y.dim(0);
  with_type(op.y.dtype, [&]<class T>(T) {
    with_flag(packs_align({op.x, op.y}), [&](auto vector) {
      launch(stream, over<T>(count), add_kernel<T, vector>, data<T>(op.x), data<T>(op.y), count);
    });
  });
}

void scale(const Stream& stream, const Scale& op) {
  const std::int64_t count = op.y.dim(0);
  with_type(op.y.dtype, [&]<class T>(T) {
    with_flag(packs_align({op.y}), [&](auto vector) {
      launch(stream, over<T>(count), scale_kernel<T, vector>, data<T>(op.y), op.factor, count);
    });
  });
}

void convert(const Stream& stream, const Convert& op) {
  const std::int64_t count = op.y.dim(0);
  if (count == 0) return;
  // With one dtype on both sides bits are copied: a NaN keeps its payload.
  if (op.x.dtype == op.y.dtype) {
    CUDA_CHECK(cudaMemcpyAsync(op.y.data, op.x.data,
                               static_cast<std::size_t>(count) * device::size_bytes(op.y.dtype),
                               cudaMemcpyDefault, static_cast<cudaStream_t>(stream.native)));
    return;
  }
  with_flag(packs_align({op.x, op.y}), [&](auto vector) {
    if (op.x.dtype == device::DType::kF32) {
      launch(stream, over<float>(count), convert_kernel<float, Bf16, vector>, data<float>(op.x),
             data<Bf16>(op.y), count);
    } else {
      launch(stream, over<float>(count), convert_kernel<Bf16, float, vector>, data<Bf16>(op.x),
             data<float>(op.y), count);
    }
  });
}

}  // namespace tandem::kernels::cuda
