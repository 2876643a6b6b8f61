// The arithmetic of a turn, for kernels that hold a pack of a head's lower half and the pack of
// their partners in the upper half, D/2 channels further on. rope.cu and attention_input.cu share
// it, so that both have the same bits (AI-1), which are the CPU's.
#pragma once

#include "kernels/cuda/numbers.cuh"

namespace tandem::kernels::cuda {

// Turns the first `count` elements of both packs. cosines and sines point to the table's entries of
// the first one. sign is 1 for the turn by p and -1 for the turn by -p.
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
