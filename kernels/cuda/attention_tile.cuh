// What every form of attention is made of: a warp holds kWarpRows query rows against one chunk of
// kChunkPositions keys. Every row is computed by the same operations in the same order wherever it
// lies in a block, so the forms agree to the bit (AT-1), and in f32 with the CPU within a split.
//
// Row r of a block is query r / heads, head r % heads of the heads that share one key/value head.
// Of the scores of a chunk, lane l has position l % 16 for the warp's rows l / 16 * 4 … + 3; of the
// outputs it has the channels l, l + 32, … for all of the warp's rows.
#pragma once

#include "kernels/cuda/exponential.cuh"
#include "kernels/cuda/numbers.cuh"
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

// The queries of one block, all of one sequence.
struct Block {
  std::int64_t row = 0;             // of query 0 in [T, …]
  std::int64_t first_position = 0;  // of query 0
  int queries = 0;
  int heads = 0;          // that share the key/value head
  int channels = 0;       // D
  std::int64_t head = 0;  // the first of the heads
  float scale = 0;

  __device__ __forceinline__ int rows() const { return queries * heads; }
  __device__ __forceinline__ std::int64_t positions() const { return first_position + queries; }
  // Positions of the chunk that row r may see, 0 … 16; none for rows past the last.
  __device__ __forceinline__ int visible(int r, std::int64_t chunk) const {
    if (r >= rows()) return 0;
    const std::int64_t count = first_position + r / heads + 1 - chunk * kChunk;
    return count < 0 ? 0 : count > kChunk ? kChunk : static_cast<int>(count);
  }
};

// The segment's own queries from `query` on, at most `most`; the rest of it is as in `shape`.
__device__ __forceinline__ Block block_of(const Segment& segment, std::int64_t query, int most,
                                          Block shape) {
  const std::int64_t left = segment.len - query;
  shape.row = segment.begin + query;
  shape.first_position = segment.prefix_len + query;
  shape.queries = left < most ? static_cast<int>(left) : most;
  return shape;
}

__device__ __forceinline__ int warp_row() {
  return static_cast<int>(threadIdx.x) / kWarp * kWarpRows;
}
__device__ __forceinline__ int lane_index() { return static_cast<int>(threadIdx.x) % kWarp; }
__device__ __forceinline__ int lane_row() { return warp_row() + lane_index() / kChunk * kLaneRows; }
__device__ __forceinline__ int lane_key() { return lane_index() % kChunk; }

// A [T, heads, D] operand.
template <class T>
struct Heads {
  T* data = nullptr;
  std::int64_t stride = 0;    // elements from token to token
  std::int64_t channels = 0;  // D

  __device__ __forceinline__ T* at(std::int64_t row, std::int64_t head) const {
    return data + row * stride + head * channels;
  }
};

template <class T>
Heads<T> heads_of(const TensorView& view) {
  return {.data = data<T>(view), .stride = view.row_stride, .channels = view.dim(2)};
}

__device__ __forceinline__ std::int64_t row_of(const Segment& segment, std::int64_t position) {
  return position < segment.prefix_len ? segment.prefix_begin + position
                                       : segment.begin + position - segment.prefix_len;
}

inline constexpr std::int64_t kNoRow = -1;

// One head of the rows row_of(0 … 15), by element; zeros for kNoRow, which is not read.
// As keys: to[d][j]. As values: to[j][d].
template <bool kKeys, class T, class RowOf>
__device__ __forceinline__ void load_chunk(const Heads<T>& from, std::int64_t head,
                                           const RowOf& row_of, float* to) {
  const int channels = static_cast<int>(from.channels);
  for (int i = static_cast<int>(threadIdx.x); i < kChunk * channels;
       i += static_cast<int>(blockDim.x)) {
    const int j = i / channels, d = i % channels;
    const std::int64_t row = row_of(j);
    to[kKeys ? d * kKeyStride + j : i] = row == kNoRow ? 0.0f : to_float(from.at(row, head)[d]);
  }
}

// The piece of work that a block is, where segments are cut into pieces of so many own rows.
struct Piece {
  std::int64_t segment = 0;  // or their count: there is no such piece
  std::int64_t index = 0;    // of the piece within it
};

// All lanes of a warp call; 32 segments at a time.
__device__ __forceinline__ Piece find_piece(const Segment* segments, std::int64_t count,
                                            std::int64_t rows_per_piece, std::int64_t piece) {
  for (std::int64_t first = 0; first < count; first += kWarp) {
    const std::int64_t own = first + lane_index();
    const int pieces =
        own < count ? static_cast<int>((segments[own].len + rows_per_piece - 1) / rows_per_piece)
                    : 0;
    int until = pieces;  // pieces up to and with this lane's segment
    for (int step = 1; step < kWarp; step *= 2) {
      const int before = __shfl_up_sync(kAllLanes, until, static_cast<unsigned>(step));
      if (lane_index() >= step) until += before;
    }
    const unsigned beyond = __ballot_sync(kAllLanes, piece < until);
    if (beyond != 0) {
      const int lane = __ffs(static_cast<int>(beyond)) - 1;
      return {.segment = first + lane,
              .index = piece - __shfl_sync(kAllLanes, until - pieces, lane)};
    }
    piece -= __shfl_sync(kAllLanes, until, kWarp - 1);
  }
  return {.segment = count};
}

// The block's rows, widened: to[r] for r < capacity, zeros past the last.
template <class T>
__device__ __forceinline__ void load_rows(const Heads<T>& from, const Block& block, int capacity,
                                          float* to) {
  for (int i = static_cast<int>(threadIdx.x); i < capacity * block.channels;
       i += static_cast<int>(blockDim.x)) {
    const int r = i / block.channels, d = i % block.channels;
    to[r * row_stride(block.channels) + d] =
        r < block.rows()
            ? to_float(from.at(block.row + r / block.heads, block.head + r % block.heads)[d])
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
  for (int r = 0; r < kWarpRows; ++r) visible[r] = block.visible(warp_row() + r, chunk);
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
