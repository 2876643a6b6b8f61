// The CPU's sums (cpu/global_norm.cc), to the bit: eight threads are the eight lanes of a block of
// kNormBlockElements, so that a warp reads four whole sectors of 32 bytes at a time. The blocks'
// sums are then added by one thread, ascending, since another order would have other bits.
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/numbers.cuh"
#include "kernels/cuda/operators.h"
#include "kernels/cuda/reduce.cuh"
#include "kernels/ops/global_norm.h"

namespace tandem::kernels::cuda {

namespace {

constexpr int kThreads = 256;
constexpr int kSums = 8;
constexpr int kBlocks = kThreads / kSums;

__global__ void square_blocks_kernel(const float* x, std::int64_t count, double* blocks) {
  const int lane = static_cast<int>(threadIdx.x) % kSums;
  const std::int64_t block =
      std::int64_t{blockIdx.x} * kBlocks + static_cast<int>(threadIdx.x) / kSums;
  const std::int64_t begin = block * kNormBlockElements;
  const std::int64_t end = begin + kNormBlockElements < count ? begin + kNormBlockElements : count;
  double sum = 0;
  for (std::int64_t i = begin + lane; i < end; i += kSums) {
    const double value = x[i];
    sum += value * value;
  }
  // Lane i takes lane i + 4, then i + 2, i + 1. Upper lanes compute sums that nothing reads.
  for (int half = kSums / 2; half > 0; half /= 2) {
    sum += __shfl_down_sync(kAllLanes, sum, static_cast<unsigned>(half), kSums);
  }
  if (lane == 0 && begin < count) blocks[block] = sum;
}

// *sum += blocks, ascending: one thread adds the numbers that all have fetched.
__global__ void add_blocks_kernel(const double* blocks, std::int64_t count, double* sum) {
  __shared__ double tile[kThreads];
  double total = 0;
  for (std::int64_t begin = 0; begin < count; begin += kThreads) {
    const std::int64_t at = begin + threadIdx.x;
    tile[threadIdx.x] = at < count ? blocks[at] : 0.0;
    __syncthreads();
    if (threadIdx.x == 0) {
      for (int i = 0; i < kThreads; ++i) total += tile[i];
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) *sum += total;
}

}  // namespace

void sum_of_squares(const Stream& stream, const SumOfSquares& op) {
  const std::int64_t count = op.x.dim(0);
  const std::int64_t blocks = (count + kNormBlockElements - 1) / kNormBlockElements;
  if (blocks == 0) return;
  launch(stream, {.grid = blocks_for(blocks, kBlocks), .block = kThreads}, square_blocks_kernel,
         data<float>(op.x), count, op.workspace.data());
  launch(stream, {.grid = 1, .block = kThreads}, add_blocks_kernel, op.workspace.data(), blocks,
         op.sum);
}

}  // namespace tandem::kernels::cuda
