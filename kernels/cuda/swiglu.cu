// A thread takes one pack of channels of one token, both of the gate and of up, and reads it before
// it writes: so in backward dx may be x itself.
#include "kernels/cuda/exponential.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/numbers.cuh"
#include "kernels/cuda/operators.h"
#include "kernels/ops/swiglu.h"

namespace tandem::kernels::cuda {

namespace {

constexpr int kThreads = 256;

__device__ __forceinline__ float sigmoid(float x) { return 1.0f / (1.0f + exponential(0.0f - x)); }

template <class T>
struct Forward {
  const T* x;
  T* y;
  std::int64_t x_stride, y_stride;
  std::int64_t tokens, channels;
};

template <class T, bool kVector>
__global__ void swiglu_kernel(Forward<T> op) {
  const std::int64_t packs = (op.channels + kPack<T> - 1) / kPack<T>;
  const std::int64_t index = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (index >= op.tokens * packs) return;
  const std::int64_t t = index / packs, f = index % packs * kPack<T>;
  const T* gates = op.x + t * op.x_stride + f;
  const Pack<T> gate = load_pack<kVector>(gates, op.channels - f);
  const Pack<T> up = load_pack<kVector>(gates + op.channels, op.channels - f);
  Pack<T> y;
  for (int i = 0; i < kPack<T>; ++i) y.at[i] = gate.at[i] * sigmoid(gate.at[i]) * up.at[i];
  store_pack<kVector>(op.y + t * op.y_stride + f, y, op.channels - f);
}

template <class T>
struct Backward {
  const T *dy, *x;
  T* dx;
  std::int64_t dy_stride, x_stride, dx_stride;
  std::int64_t tokens, channels;
};

// silu'(g) = s * (1 + g * (1 - s)) with s = sigmoid(g).
template <class T, bool kVector>
__global__ void swiglu_backward_kernel(Backward<T> op) {
  const std::int64_t packs = (op.channels + kPack<T> - 1) / kPack<T>;
  const std::int64_t index = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (index >= op.tokens * packs) return;
  const std::int64_t t = index / packs, f = index % packs * kPack<T>, left = op.channels - f;
  const T* gates = op.x + t * op.x_stride + f;
  const Pack<T> gate = load_pack<kVector>(gates, left);
  const Pack<T> up = load_pack<kVector>(gates + op.channels, left);
  const Pack<T> dy = load_pack<kVector>(op.dy + t * op.dy_stride + f, left);
  Pack<T> dgate, dup;
  for (int i = 0; i < kPack<T>; ++i) {
    const float g = gate.at[i], d = dy.at[i], s = sigmoid(g);
    dgate.at[i] = d * up.at[i] * s * fmaf(g, 1.0f - s, 1.0f);
    dup.at[i] = d * g * s;
  }
  T* to = op.dx + t * op.dx_stride + f;
  store_pack<kVector>(to, dgate, left);
  store_pack<kVector>(to + op.channels, dup, left);
}

template <class T>
Launch over(std::int64_t tokens, std::int64_t channels) {
  const std::int64_t packs = (channels + kPack<T> - 1) / kPack<T>;
  return {.grid = blocks_for(tokens * packs, kThreads), .block = kThreads};
}

// Whether both halves of a row, gate and up, begin at a multiple of 16 bytes if the row does.
template <class T>
bool halves_align(const TensorView& view) {
  return view.dim(1) / 2 % kPack<T> == 0;
}

}  // namespace

void swiglu(const Stream& stream, const Swiglu& op) {
  with_type(op.y.dtype, [&]<class T>(T) {
    const Forward<T> forward{.x = data<T>(op.x),
                             .y = data<T>(op.y),
                             .x_stride = op.x.row_stride,
                             .y_stride = op.y.row_stride,
                             .tokens = op.y.dim(0),
                             .channels = op.y.dim(1)};
    with_flag(packs_align({op.x, op.y}) && halves_align<T>(op.x), [&](auto vector) {
      launch(stream, over<T>(forward.tokens, forward.channels), swiglu_kernel<T, vector>, forward);
    });
  });
}

void swiglu_backward(const Stream& stream, const SwigluBackward& op) {
  with_type(op.dy.dtype, [&]<class T>(T) {
    const Backward<T> backward{.dy = data<T>(op.dy),
                               .x = data<T>(op.x),
                               .dx = data<T>(op.dx),
                               .dy_stride = op.dy.row_stride,
                               .x_stride = op.x.row_stride,
                               .dx_stride = op.dx.row_stride,
                               .tokens = op.dy.dim(0),
                               .channels = op.dy.dim(1)};
    with_flag(packs_align({op.dy, op.x, op.dx}) && halves_align<T>(op.x), [&](auto vector) {
      launch(stream, over<T>(backward.tokens, backward.channels), swiglu_backward_kernel<T, vector>,
             backward);
    });
  });
}

}  // namespace tandem::kernels::cuda
