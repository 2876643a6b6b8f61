// The places of a slot's keys and values, in the layout that kernels/ops/kv_cache.h describes. In
// f32 the keys of 16 positions are interleaved; in bf16 a key is contiguous.
#pragma once

#include "kernels/cuda/numbers.cuh"
#include "kernels/ops/attention.h"
#include "kernels/ops/kv_cache.h"

namespace tandem::kernels::cuda {

// The two pools. `positions` is the number of positions of a page.
template <class T>
struct KvPages {
  T *keys, *values;
  std::int64_t groups, channels;
  std::int32_t positions;

  // Elements from a channel of a key to the next one; the channels of a value are contiguous.
  static constexpr std::int64_t kKeyStep = std::is_same_v<T, float> ? kChunkPositions : 1;

  struct Place {
    T *key, *value;  // channel 0
  };
  // `slot` is not negative.
  __device__ __forceinline__ Place place(std::int32_t slot, std::int64_t group) const {
    const std::int64_t page = slot / positions, position = slot % positions;
    const std::int64_t base = (page * groups + group) * positions * channels;
    const std::int64_t within = position % kKeyStep;  // place in the chunk; 0 in bf16
    return {keys + base + (position - within) * channels + within,
            values + base + position * channels};
  }
};

template <class T>
KvPages<T> kv_pages(const TensorView& k_pages, const TensorView& v_pages) {
  return {.keys = data<T>(k_pages),
          .values = data<T>(v_pages),
          .groups = k_pages.dim(1),
          .channels = k_pages.dim(3),
          .positions = static_cast<std::int32_t>(k_pages.dim(2))};
}

}  // namespace tandem::kernels::cuda
