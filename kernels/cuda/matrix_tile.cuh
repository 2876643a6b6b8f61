// Tiles of bf16 rows in shared memory, and their products on tensor cores. The sums of a product
// are f32: 16 rows by a multiple of 8 columns, spread over the lanes of a warp as primitives.cuh
// lays out C. An array sums[n][4] holds the lane's part of the columns 8 n … 8 n + 7.
//
// The rows of a tile are kChannels + 8 elements apart. A matrix is read by 16 bytes from each of
// eight rows; the 16 bytes of padding put these reads on all 32 banks of shared memory, so they do
// not wait for each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/cuda/numbers.cuh"
#include "kernels/cuda/primitives.cuh"
#include "kernels/cuda/reduce.cuh"

namespace tandem::kernels::cuda {

inline constexpr int kMatrixRows = 16;  // rows of a warp's tile
// Dynamic shared memory that one block may have on every GPU for which the module is built
// (shared_bytes_max() in launch.cuh says it for the GPU at hand).
inline constexpr std::size_t kSharedBytesMax = 97 << 10;

// Elements from row to row of a tile, and bytes of a row with its padding.
template <int kChannels>
inline constexpr int kTileStride = kChannels + 8;
template <int kChannels>
inline constexpr std::size_t kTileRowBytes = kTileStride<kChannels> * sizeof(Bf16);

__device__ __forceinline__ int matrix_lane() { return static_cast<int>(threadIdx.x) % kWarp; }
// The lane's first row and column of C. The lane has that column and the next one, and also the row
// eight further on; four neighbouring lanes share a row.
__device__ __forceinline__ int matrix_row() { return matrix_lane() / 4; }
__device__ __forceinline__ int matrix_column() { return matrix_lane() % 4 * 2; }

// The threads that copy a tile and wait for it together: a warp (kThreads = kWarp) or the block.
template <int kThreads>
struct Team {
  static_assert(kThreads % kWarp == 0);
  // The thread's index in its team.
  __device__ __forceinline__ static int thread() {
    return static_cast<int>(threadIdx.x) % kThreads;
  }
  __device__ __forceinline__ static void sync() {
    if constexpr (kThreads == kWarp) {
      __syncwarp();
    } else {
      __syncthreads();
    }
  }
};

// Begins to copy the first `columns` elements of the rows row(0) … row(count - 1) into a tile. The
// rest of the tile's kRows rows of kColumns elements becomes zeros, so that padded channels add
// nothing to products. `count` may be 0 or less. `valid` is any address of global memory, aligned
// to 16 bytes: a copy of zeros names it, and does not read it. The copies belong to the thread's
// next group (copy_async_commit).
template <int kThreads, int kRows, int kColumns, int kStride, class Row>
__device__ __forceinline__ void copy_rows(int count, int columns, const Bf16* valid, const Row& row,
                                          Bf16* tile) {
  constexpr int kPacks = kColumns / kPack<Bf16>;
  TANDEM_UNROLL
  for (int i = 0; i < kRows * kPacks; i += kThreads) {
    const int pack = i + Team<kThreads>::thread();
    if (kRows * kPacks % kThreads != 0 && pack >= kRows * kPacks) break;
    const int j = pack / kPacks, d = pack % kPacks * kPack<Bf16>;
    const bool inside = j < count && d < columns;
    copy_async<16>(tile + j * kStride + d, inside ? row(j) + d : valid, !inside);
  }
}

// sums[16][kRows] += a * b^T, with 16 rows at `a` and kRows rows at `b` of kChannels channels each:
// scores of queries against keys. A row of the sums depends on its own row of `a` alone.
template <int kChannels, int kRows>
__device__ __forceinline__ void multiply_by_rows(const Bf16* a, const Bf16* b, float (*sums)[4]) {
  constexpr int kStride = kTileStride<kChannels>;
  const int lane = matrix_lane();
  // Each lane passes one row of one of four matrices (load_matrices). For a they are A's quarters:
  // rows 0 … 7 and 8 … 15 of the first eight channels, then of the next eight. For b they are both
  // halves of the channels for rows 0 … 7, then for rows 8 … 15: B of two products. A row of b is a
  // column of B, so b needs no transposition.
  a += lane % 16 * kStride + lane / 16 * 8;
  b += (lane % 8 + lane / 16 * 8) * kStride + lane / 8 % 2 * 8;
  TANDEM_UNROLL
  for (int d = 0; d < kChannels; d += 16) {
    unsigned own[4];
    load_matrices<false>(a + d, own);
    TANDEM_UNROLL
    for (int n = 0; n < kRows; n += 16) {
      unsigned other[4];
      load_matrices<false>(b + n * kStride + d, other);
      multiply_matrices(own, other[0], other[1], sums[n / 8]);
      multiply_matrices(own, other[2], other[3], sums[n / 8 + 1]);
    }
  }
}

// sums[16][kColumns] += weights * b, with weights [16][kRows] as round_to_operand leaves them, and
// kColumns channels of the kRows rows at `b`: weighted sums of values.
template <int kRows, int kColumns, int kStride>
__device__ __forceinline__ void multiply_by_columns(const unsigned (*weights)[4], const Bf16* b,
                                                    float (&sums)[kColumns / 8][4]) {
  const int lane = matrix_lane();
  // Four matrices again: rows 0 … 7 and 8 … 15 of eight channels, then of the next eight, which are
  // B of two products. A row of b is a row of B, which is loaded transposed.
  b += lane % 16 * kStride + lane / 16 * 8;
  TANDEM_UNROLL
  for (int k = 0; k < kRows; k += 16) {
    TANDEM_UNROLL
    for (int d = 0; d < kColumns; d += 16) {
      unsigned other[4];
      load_matrices<true>(b + k * kStride + d, other);
      multiply_matrices(weights[k / 16], other[0], other[1], sums[d / 8]);
      multiply_matrices(weights[k / 16], other[2], other[3], sums[d / 8 + 1]);
    }
  }
}

// Two floats, rounded to bf16 (to nearest, ties to even), in one register.
__device__ __forceinline__ unsigned pack_pair(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const unsigned*>(&pair);
}

// Rounds a product C to bf16 and lays it out as the left operand A of the next product. Both
// layouts give a lane the same rows and columns, so no lane needs another lane's values.
template <int kColumns>
__device__ __forceinline__ void round_to_operand(const float (&values)[kColumns / 8][4],
                                                 unsigned (&to)[kColumns / 16][4]) {
  TANDEM_UNROLL
  for (int i = 0; i < kColumns / 16; ++i) {
    const float(&left)[4] = values[2 * i];
    const float(&right)[4] = values[2 * i + 1];
    to[i][0] = pack_pair(left[0], left[1]);
    to[i][1] = pack_pair(left[2], left[3]);
    to[i][2] = pack_pair(right[0], right[1]);
    to[i][3] = pack_pair(right[2], right[3]);
  }
}

// Writes the lane's part of row matrix_row() + 8 * half of C, times `factor` and rounded, to the
// row at `to`. Columns from `columns` on are padding and are not written.
template <int kColumns>
__device__ __forceinline__ void store_half_row(const float (&sums)[kColumns / 8][4], int half,
                                               float factor, int columns, Bf16* to) {
  TANDEM_UNROLL
  for (int n = 0; n < kColumns / 8; ++n) {
    const int d = n * 8 + matrix_column();
    if (d < columns) {
      *reinterpret_cast<unsigned*>(to + d) =
          pack_pair(sums[n][2 * half] * factor, sums[n][2 * half + 1] * factor);
    }
  }
}

// Calls body with the number of channels to which a tile's rows are padded, as a constant.
// `channels` is 256 at most.
template <class Body>
void with_padded(std::int64_t channels, const Body& body) {
  if (channels <= 64) {
    body(std::integral_constant<int, 64>{});
  } else if (channels <= 128) {
    body(std::integral_constant<int, 128>{});
  } else {
    body(std::integral_constant<int, 256>{});
  }
}

}  // namespace tandem::kernels::cuda
