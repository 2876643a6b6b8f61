// A thread turns one pack of a head's lower half and its partners in the upper half, which no other
// thread reads or writes: so x is turned in place.
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/numbers.cuh"
#include "kernels/cuda/operators.h"
#include "kernels/cuda/rope.cuh"
#include "kernels/ops/rope.h"

namespace tandem::kernels::cuda {

namespace {

constexpr int kThreads = 256;

template <class T>
struct Turn {
  T* x;
  const std::int32_t* positions;
  const float *cos, *sin;
  std::int64_t stride, tokens, heads, half;
  float sign;
};

template <class T, bool kVector>
__global__ void rope_kernel(Turn<T> op) {
  const std::int64_t packs = (op.half + kPack<T> - 1) / kPack<T>;
  const std::int64_t index = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (index >= op.tokens * op.heads * packs) return;
  const std::int64_t i = index % packs * kPack<T>, left = op.half - i;
  const std::int64_t h = index / packs % op.heads, t = index / packs / op.heads;
  T* low = op.x + t * op.stride + h * 2 * op.half + i;
  T* high = low + op.half;
  const std::int64_t table = op.positions[t] * op.half + i;
  Pack<T> a = load_pack<kVector>(low, left), b = load_pack<kVector>(high, left);
  turn(a, b, op.cos + table, op.sin + table, op.sign, left);
  store_pack<kVector>(low, a, left);
  store_pack<kVector>(high, b, left);
}

}  // namespace

void rope(const Stream& stream, const Rope& op) {
  with_type(op.x.dtype, [&]<class T>(T) {
    const Turn<T> turn{.x = data<T>(op.x),
                       .positions = data<std::int32_t>(op.positions),
                       .cos = data<float>(op.cos),
                       .sin = data<float>(op.sin),
                       .stride = op.x.row_stride,
                       .tokens = op.x.dim(0),
                       .heads = op.x.dim(1),
                       .half = op.x.dim(2) / 2,
                       .sign = op.direction == Direction::kForward ? 1.0f : -1.0f};
    const std::int64_t packs = (turn.half + kPack<T> - 1) / kPack<T>;
    with_flag(packs_align({op.x}) && turn.half % kPack<T> == 0, [&](auto vector) {
      launch(stream,
             {.grid = blocks_for(turn.tokens * turn.heads * packs, kThreads), .block = kThreads},
             rope_kernel<T, vector>, turn);
    });
  });
}

}  // namespace tandem::kernels::cuda
