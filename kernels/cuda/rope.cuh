// The arithmetic of a turn, for kernels that hold a pack of a head's lower half and its partners.
#pragma once

#include "kernels/cuda/numbers.cuh"

namespace tandem::kernels::cuda {

// The first `count` elements; cos and sin are theirs. sign: -1 turns back.
template <class T>
__device__ __forceinline__ void turn(Pack<T>& low, Pack<T>& high, const float* cosines,
                                     const float* sines, float sign, std::int64_t count) {
  for (int i = 0; i < kPack<T> && i < count; ++i) {
    const float cos = cosines[i], sin = sines[i] * sign;
    const float x = low.at[i], y = high.at[i];
    low.at[i] = fmaf(-y, sin, x * cos);
    high.at[i] = fmaf(x, sin, y * cos);
  }
}

}  // namespace tandem::kernels::cuda
