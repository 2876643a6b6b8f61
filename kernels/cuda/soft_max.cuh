// The sums of one row of logits, by one block, in one pass over memory. log_prob and sample share
// them, so that both have the same bits (LP-1).
//
// A thread takes every kSoftMaxThreads-th pack with a running maximum (Milakov and Gimelshein,
// 2018). Then the threads' sums are joined in one tree, two at a time, each scaled to the larger
// maximum of the two. The tree depends on the row's length and dtype alone. The bits differ from
// the CPU's, which finds the maximum in a pass of its own.
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

// The same sums about another maximum, which is not smaller. With d the old maximum less the new
// one: e becomes e * exp(d), and e * (z - maximum) becomes (e * (z - maximum) + e * d) * exp(d).
__device__ __forceinline__ SoftMaxSums scaled_to(const SoftMaxSums& sums, float maximum) {
  if (sums.maximum == maximum) return sums;
  const float less = sums.maximum - maximum, scale = exponential(less);
  // Before the first token the maximum is minus infinity and the sum 0: less times 0 would be NaN.
  if (sums.sum == 0.0f || scale == 0.0f) return {maximum, sums.sum * scale, 0.0f};
  return {maximum, sums.sum * scale, (sums.weighted + sums.sum * less) * scale};
}

// Joins the lanes' sums; all lanes get the same bits, since joining two is commutative.
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

// Adds the first `count` logits of a pack. The sums are rescaled once for the pack.
template <class T>
__device__ __forceinline__ void add_pack(SoftMaxSums& sums, const Pack<T>& pack, int count,
                                         float factor) {
  float maximum = sums.maximum;
  for (int i = 0; i < kPack<T> && i < count; ++i) maximum = fmaxf(maximum, pack.at[i] * factor);
  sums = scaled_to(sums, maximum);
  for (int i = 0; i < kPack<T> && i < count; ++i) {
    const float z = pack.at[i] * factor - maximum;
    // While all logits are minus infinity, so is the maximum, and z is NaN.
    const float e = pack.at[i] * factor == -infinity() ? 0.0f : exponential(z);
    sums.sum += e;
    // A token of weight zero adds nothing to the entropy: 0 * -infinity would be NaN.
    if (e > 0.0f) sums.weighted = fmaf(e, z, sums.weighted);
  }
}

// The sums of logits[0 … count - 1], for the whole block of kSoftMaxThreads, which calls together
// and gets them in every thread. `scratch` is kSoftMaxWarps elements of shared memory and may be
// used again at once.
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
  // Every warp joins the warps' sums, in the same tree, so that every thread has the result.
  const SoftMaxSums nothing{-infinity(), 0.0f, 0.0f};
  sums = warp_joined(lane < kSoftMaxWarps ? scratch[lane] : nothing);
  __syncthreads();
  return sums;
}

}  // namespace tandem::kernels::cuda
