// What every form of attention in f32 is made of: a warp holds kWarpRows query rows against one
// chunk of kChunkPositions keys. Every row is computed by the same operations in the same order
// wherever it lies in a block, so the forms agree to the bit (AT-1), and with the CPU within a
// split.
//
// Of the scores of a chunk, lane l has position l % 16 for the warp's rows l / 16 * 4 … + 3; of the
// outputs it has the channels l, l + 32, … for all of the warp's rows.
#pragma once

#include "kernels/cuda/attention_block.cuh"
#include "kernels/cuda/exponential.cuh"
#include "kernels/cuda/reduce.cuh"
#include "kernels/ops/attention.h"

namespace tandem::kernels::cuda {

inline constexpr int kChunk = static_cast<int>(kChunkPositions);
inline constexpr int kWarpRows = 8;
inline constexpr int kLaneRows = kWarpRows / 2;
static_assert(kChunk * 2 == kWarp);

// Elements between rows, and between channels of transposed keys, that keep neighbours off one bank
// of shared memory.
__device__ __forceinline__ int row_stride(int channels) { return channels + 4; }
inline constexpr int kKeyStride = kChunk + 1;

__device__ __forceinline__ int warp_row() {
  return static_cast<int>(threadIdx.x) / kWarp * kWarpRows;
}
__device__ __forceinline__ int lane_row() { return warp_row() + lane_index() / kChunk * kLaneRows; }
__device__ __forceinline__ int lane_key() { return lane_index() % kChunk; }

// One head of the rows row_of(0 … 15), by element; zeros for kNoRow, which is not read.
// As keys: to[d][j]. As values: to[j][d].
template <bool kKeys, class RowOf>
__device__ __forceinline__ void load_chunk(const Heads<float>& from, std::int64_t head,
                                           const RowOf& row_of, float* to) {
  const int channels = static_cast<int>(from.channels);
  for (int i = static_cast<int>(threadIdx.x); i < kChunk * channels;
       i += static_cast<int>(blockDim.x)) {
    const int j = i / channels, d = i % channels;
    const std::int64_t row = row_of(j);
    to[kKeys ? d * kKeyStride + j : i] = row == kNoRow ? 0.0f : from.at(row, head)[d];
  }
}

// The block's rows: to[r] for r < capacity, zeros past the last.
__device__ __forceinline__ void load_rows(const Heads<float>& from, const Block& block,
                                          int capacity, float* to) {
  for (int i = static_cast<int>(threadIdx.x); i < capacity * block.channels;
       i += static_cast<int>(blockDim.x)) {
    const int r = i / block.channels, d = i % block.channels;
    to[r * row_stride(block.channels) + d] =
        r < block.rows() ? from.at(block.row + r / block.heads, block.head + r % block.heads)[d]
                         : 0.0f;
  }
}

// sums[i] = rows[lane_row() + i] . keys[:, lane_key()], channels ascending.
__device__ __forceinline__ void dot_keys(const float* rows, const float* keys, int channels,
                                         float (&sums)[kLaneRows]) {
  const float* own = rows + lane_row() * row_stride(channels);
  for (int i = 0; i < kLaneRows; ++i) sums[i] = 0.0f;
  for (int d = 0; d < channels; d += 4) {
    float4 q[kLaneRows];
    for (int i = 0; i < kLaneRows; ++i) {
      q[i] = *reinterpret_cast<const float4*>(own + i * row_stride(channels) + d);
    }
    const float* key = keys + d * kKeyStride + lane_key();
    for (int i = 0; i < kLaneRows; ++i) {
      sums[i] = fmaf(q[i].x, key[0], sums[i]);
      sums[i] = fmaf(q[i].y, key[kKeyStride], sums[i]);
      sums[i] = fmaf(q[i].z, key[2 * kKeyStride], sums[i]);
      sums[i] = fmaf(q[i].w, key[3 * kKeyStride], sums[i]);
    }
  }
}

// Over the 16 lanes that share their rows, halves first.
__device__ __forceinline__ float chunk_max(float value) {
  for (int step = kChunk / 2; step > 0; step /= 2) {
    value = fmaxf(value, __shfl_xor_sync(kAllLanes, value, step));
  }
  return value;
}
__device__ __forceinline__ float chunk_sum(float value) {
  for (int step = kChunk / 2; step > 0; step /= 2) {
    value += __shfl_xor_sync(kAllLanes, value, step);
  }
  return value;
}

// What the lanes of warp row r know of it (of = one value per lane row), told to the whole warp.
__device__ __forceinline__ float of_row(const float (&of)[kLaneRows], int r) {
  return __shfl_sync(kAllLanes, of[r % kLaneRows], r / kLaneRows * kChunk);
}

// Rows of one operand, [16] of them: element d of row j lies at j * row + d * channel.
struct ChunkRows {
  const float* data = nullptr;
  int row = 0;
  int channel = 0;
};

// sums[r] += sum_j weights[j][r] * rows[j], j ascending over the positions that row r sees: the
// others' may be no numbers at all. weights is the warp's own [16][8].
template <int kColumns>
__device__ __forceinline__ void add_rows(const Block& block, std::int64_t chunk,
                                         const float* weights, const ChunkRows& rows,
                                         float (&sums)[kWarpRows][kColumns]) {
  int visible[kWarpRows];
  for (int r = 0; r < kWarpRows; ++r)
    visible[r] = block.visible(warp_row() + r, chunk * kChunk, kChunk);
  for (int j = 0; j < kChunk; ++j) {
    for (int c = 0; c < kColumns; ++c) {
      const int d = lane_index() + c * kWarp;
      const float value = d < block.channels ? rows.data[j * rows.row + d * rows.channel] : 0.0f;
      for (int r = 0; r < kWarpRows; ++r) {
        if (j < visible[r]) sums[r][c] = fmaf(weights[j * kWarpRows + r], value, sums[r][c]);
      }
    }
  }
}

// A chunk's weights where the whole warp finds them, [16][8].
__device__ __forceinline__ void share(const float (&values)[kLaneRows], float* to) {
  __syncwarp();
  const int first = lane_index() / kChunk * kLaneRows;
  for (int i = 0; i < kLaneRows; ++i) to[lane_key() * kWarpRows + first + i] = values[i];
  __syncwarp();
}

}  // namespace tandem::kernels::cuda
