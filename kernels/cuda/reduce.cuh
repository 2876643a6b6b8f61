// Sums and maxima over the threads of a warp or of a team of warps, each in one fixed tree: the
// result depends on the threads' values and on nothing else, and every thread gets the same bits.
//
// All threads of the team call together. A team of one warp synchronises its warp alone, so several
// such teams work in one block independently. A larger team is always the whole block, because its
// barrier is the block's.
#pragma once

#include <cuda_runtime.h>

namespace tandem::kernels::cuda {

inline constexpr int kWarp = 32;
inline constexpr unsigned kAllLanes = 0xffffffffu;

// Lane i meets lane i ^ 16, then 8, 4, 2, 1; addition commutes, so all lanes agree to the bit.
template <class T>
__device__ __forceinline__ T warp_sum(T value) {
  for (int step = kWarp / 2; step > 0; step /= 2) value += __shfl_xor_sync(kAllLanes, value, step);
  return value;
}

// NaN is passed over: fmaxf gives its other operand.
__device__ __forceinline__ float warp_max(float value) {
  for (int step = kWarp / 2; step > 0; step /= 2) {
    value = fmaxf(value, __shfl_xor_sync(kAllLanes, value, step));
  }
  return value;
}

// `scratch` is one T per warp of the block, in shared memory; a team of one warp does not use it.
// The second barrier lets the caller use it again at once.
template <int kThreads, class T>
__device__ __forceinline__ T team_sum(T value, T* scratch) {
  value = warp_sum(value);
  if (kThreads == kWarp) return value;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  if (lane == 0) scratch[threadIdx.x / kWarp] = value;
  __syncthreads();
  // Every warp adds up the warps' sums, in the same tree, so that every thread has the result.
  value = warp_sum(lane < kThreads / kWarp ? scratch[lane] : T{});
  __syncthreads();
  return value;
}

// Sums of the team's values: those of the threads before this one, and those of all threads.
// Callers use integers, so the order of the additions does not matter. `scratch` is as above.
template <class T>
struct Prefix {
  T before, all;
};
template <int kThreads, class T>
__device__ __forceinline__ Prefix<T> team_prefix(T value, T* scratch) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  T until = value;
  for (int step = 1; step < kWarp; step *= 2) {
    const T left = __shfl_up_sync(kAllLanes, until, static_cast<unsigned>(step));
    if (lane >= step) until += left;
  }
  if (lane == kWarp - 1) scratch[threadIdx.x / kWarp] = until;
  __syncthreads();
  Prefix<T> prefix{until - value, T{}};
  for (int warp = 0; warp < kThreads / kWarp; ++warp) {
    if (warp < static_cast<int>(threadIdx.x) / kWarp) prefix.before += scratch[warp];
    prefix.all += scratch[warp];
  }
  __syncthreads();
  return prefix;
}

}  // namespace tandem::kernels::cuda
