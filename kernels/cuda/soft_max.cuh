// The sums of one row of logits, by one block, in one pass: log_prob and sample share them (LP-1).
//
// A thread takes every kSoftMaxThreads-th pack with a running maximum (Milakov and Gimelshein,
// 2018); then the threads' sums meet in one tree, each scaled to the larger maximum of the two. The
// tree depends on the row's length and dtype alone.
#pragma once

#include "kernels/cuda/exponential.cuh"
#include "kernels/cuda/numbers.cuh"
#include "kernels/cuda/reduce.cuh"

namespace tandem::kernels::cuda {

inline constexpr int kSoftMaxThreads = 256;
inline constexpr int kSoftMaxWarps = kSoftMaxThreads / kWarp;

struct SoftMaxSums {
  float maximum;   // of z = logits * factor
  float sum;       // of e = exp(z - maximum)
  float weighted;  // of e * (z - maximum)
};

// The same sums about a maximum that is no smaller.
__device__ __forceinline__ SoftMaxSums scaled_to(const SoftMaxSums& sums, float maximum) {
  if (sums.maximum == maximum) return sums;
  const float less = sums.maximum - maximum, scale = exponential(less);
  if (sums.sum == 0.0f || scale == 0.0f) return {maximum, sums.sum * scale, 0.0f};
  return {maximum, sums.sum * scale, (sums.weighted + sums.sum * less) * scale};
}

// The lanes' sums, in all lanes: which of two is `a` makes no difference to a bit.
__device__ __forceinline__ SoftMaxSums warp_joined(SoftMaxSums a) {
  for (int step = kWarp / 2; step > 0; step /= 2) {
    const SoftMaxSums b{__shfl_xor_sync(kAllLanes, a.maximum, step),
                        __shfl_xor_sync(kAllLanes, a.sum, step),
                        __shfl_xor_sync(kAllLanes, a.weighted, step)};
    const float maximum = fmaxf(a.maximum, b.maximum);
    const SoftMaxSums own = scaled_to(a, maximum), other = scaled_to(b, maximum);
    a = {maximum, own.sum + other.sum, own.weighted + other.weighted};
  }
  return a;
}

template <class T>
__device__ __forceinline__ void add_pack(SoftMaxSums& sums, const Pack<T>& pack, int count,
                                         float factor) {
  float maximum = sums.maximum;
  for (int i = 0; i < kPack<T> && i < count; ++i) maximum = fmaxf(maximum, pack.at[i] * factor);
  sums = scaled_to(sums, maximum);
  for (int i = 0; i < kPack<T> && i < count; ++i) {
    const float z = pack.at[i] * factor - maximum;
    const float e = pack.at[i] * factor == -infinity() ? 0.0f : exponential(z);
    sums.sum += e;
    // A weight of zero has no part in the entropy, even of a logit of minus infinity.
    if (e > 0.0f) sums.weighted = fmaf(e, z, sums.weighted);
  }
}

// For the whole block of kSoftMaxThreads, which calls together. `scratch` is shared memory and may
// be used again at once.
template <bool kVector, class T>
__device__ __forceinline__ SoftMaxSums soft_max_sums(const T* logits, std::int64_t count,
                                                     float factor, SoftMaxSums* scratch) {
  SoftMaxSums sums{-infinity(), 0.0f, 0.0f};
  for (std::int64_t i = std::int64_t{threadIdx.x} * kPack<T>; i < count;
       i += kSoftMaxThreads * kPack<T>) {
    const std::int64_t left = count - i;
    add_pack<T>(sums, load_pack<kVector>(logits + i, left),
                left < kPack<T> ? static_cast<int>(left) : kPack<T>, factor);
  }
  sums = warp_joined(sums);
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  if (lane == 0) scratch[threadIdx.x / kWarp] = sums;
  __syncthreads();
  const SoftMaxSums nothing{-infinity(), 0.0f, 0.0f};
  sums = warp_joined(lane < kSoftMaxWarps ? scratch[lane] : nothing);
  __syncthreads();
  return sums;
}

}  // namespace tandem::kernels::cuda
