// The parts of every form of attention in f32: a warp holds kWarpRows query rows against one chunk
// of kChunkPositions keys. Every row is computed by the same operations in the same order, wherever
// in a block it is, so the forms agree to the bit (AT-1), and with the CPU within a split.
//
// The values of a warp's 8 rows are spread over its 32 lanes in two ways:
//   scores [8][16]   lane l has position l % 16 of four rows, the "lane rows", from l / 16 * 4 on
//   outputs [8][D]   lane l has the channels l, l + 32, … of all 8 rows
// share() brings scores from the first form to where the second can use them.
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

// Elements from row to row, and from channel to channel of transposed keys. The padding keeps
// elements that lanes read together on different banks of shared memory; rows stay aligned to 16
// bytes for float4.
__device__ __forceinline__ int row_stride(int channels) { return channels + 4; }
inline constexpr int kKeyStride = kChunk + 1;

// The block's row with which the warp's rows begin, and the lane's; the lane's key in a chunk.
__device__ __forceinline__ int warp_row() {
  return static_cast<int>(threadIdx.x) / kWarp * kWarpRows;
}
__device__ __forceinline__ int lane_row() { return warp_row() + lane_index() / kChunk * kLaneRows; }
__device__ __forceinline__ int lane_key() { return lane_index() % kChunk; }

// Copies one head of the rows row_of(0) … row_of(15) to shared memory, element by element; zeros
// for kNoRow. kKeys: transposed, to[d][j] with the stride kKeyStride. Otherwise to[j][d], dense.
// The whole block calls; a barrier must follow.
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

// Copies the block's rows to shared memory: to[r] for r < capacity, zeros past the block's last
// row. The whole block calls; a barrier must follow.
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

// Reductions over the 16 lanes that have the same rows, in the tree of the CPU's lanes: i meets
// i + 8, then i + 4, 2, 1.
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

// A value of warp row r, for the whole warp. `of` holds one value per lane row; all lanes that have
// row r hold the same.
__device__ __forceinline__ float of_row(const float (&of)[kLaneRows], int r) {
  return __shfl_sync(kAllLanes, of[r % kLaneRows], r / kLaneRows * kChunk);
}

// The 16 rows of an operand in shared memory: element d of row j is at j * row + d * channel.
struct ChunkRows {
  const float* data = nullptr;
  int row = 0;
  int channel = 0;
};

// sums[r] += sum_j weights[j][r] * rows[j], j ascending over the positions that row r sees. Other
// positions are left out, because they may hold NaN. weights is the warp's own [16][8], in shared
// memory; lane l adds up the channels l + 32 c.
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

// Writes the lanes' values of a chunk to `to`, [16][8] in shared memory, for the warp to read. The
// first barrier waits until the warp has read the chunk before, the second until all is written.
__device__ __forceinline__ void share(const float (&values)[kLaneRows], float* to) {
  __syncwarp();
  const int first = lane_index() / kChunk * kLaneRows;
  for (int i = 0; i < kLaneRows; ++i) to[lane_key() * kWarpRows + first + i] = values[i];
  __syncwarp();
}

}  // namespace tandem::kernels::cuda
