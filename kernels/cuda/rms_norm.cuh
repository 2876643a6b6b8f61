// The arithmetic of a row's norm, for kernels that hold the row in packs. rms_norm.cu and
// attention_input.cu share it, so that both have the same bits (AI-1): a thread adds up the squares
// of its packs, channels ascending, and the threads' sums are added in the tree of reduce.cuh.
#pragma once

#include "kernels/cuda/numbers.cuh"

namespace tandem::kernels::cuda {

// squares + the squares of a pack, whose elements past the row's end are zeros.
template <class T>
__device__ __forceinline__ float add_squares(float squares, const Pack<T>& pack) {
  for (int i = 0; i < kPack<T>; ++i) squares = fmaf(pack.at[i], pack.at[i], squares);
  return squares;
}

// 1 / sqrt(mean + eps) of a row whose squares add up to `sum`.
__device__ __forceinline__ float inverse_rms(float sum, std::int64_t channels, float eps) {
  return 1.0f / sqrtf(sum / static_cast<float>(channels) + eps);
}

template <class T>
__device__ __forceinline__ void normalise(Pack<T>& pack, float inverse, const Pack<T>& weight) {
  for (int i = 0; i < kPack<T>; ++i) pack.at[i] = pack.at[i] * inverse * weight.at[i];
}

}  // namespace tandem::kernels::cuda
