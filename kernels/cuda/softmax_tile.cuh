// The running softmax of attention on tensor cores, for attention_bf16.cu: the state of 16 rows,
// held by a warp in registers as primitives.cuh lays out C. For each split of positions:
//
//   clear   no position seen
//   weigh   once per chunk of kMatrixChunk positions, ascending; the caller then adds the weighted
//           values to `out`
//   total   once; the sums of the lanes that share a row become the row's
//   merge   joins the split to those before it
#pragma once

#include "kernels/cuda/exponential.cuh"
#include "kernels/cuda/matrix_tile.cuh"
#include "kernels/ops/attention.h"

namespace tandem::kernels::cuda {

inline constexpr int kMatrixChunk = static_cast<int>(kMatrixChunkPositions);

// A lane has parts of two rows, index 0 for matrix_row() and index 1 for the row eight further on.
// Four neighbouring lanes share a row.
template <int kColumns>
struct SoftmaxTile {
  float maximum[2];            // of the scores; minus infinity: nothing seen
  float sums[2];               // this lane's part, or after total() the whole
  float out[kColumns / 8][4];  // weighted values

  __device__ __forceinline__ void clear() {
    for (int i = 0; i < 2; ++i) maximum[i] = -infinity(), sums[i] = 0.0f;
    TANDEM_UNROLL
    for (int n = 0; n < kColumns / 8; ++n) {
      for (int i = 0; i < 4; ++i) out[n][i] = 0.0f;
    }
  }

  __device__ __forceinline__ void scale_out(const float (&factors)[2]) {
    TANDEM_UNROLL
    for (int n = 0; n < kColumns / 8; ++n) {
      for (int i = 0; i < 4; ++i) out[n][i] *= factors[i / 2];
    }
  }

  // Turns products into weights relative to the row's new maximum, adds them to the sums and
  // rescales the earlier sums and `out`. The rows see the first `visible` columns of the chunk; a
  // row that sees none keeps its sums to the bit.
  __device__ __forceinline__ void weigh(const int (&visible)[2], float scale,
                                        float (&scores)[kMatrixChunk / 8][4]) {
    float shrink[2], base[2];
    bool shrinks = false;
    for (int i = 0; i < 2; ++i) {
      float most = -infinity();
      TANDEM_UNROLL
      for (int n = 0; n < kMatrixChunk / 8; ++n) {
        for (int c = 0; c < 2; ++c) {
          float& score = scores[n][2 * i + c];
          score = n * 8 + matrix_column() + c < visible[i] ? score * scale : -infinity();
          most = fmaxf(most, score);
        }
      }
      // The four lanes that share a row differ in the two lowest bits of their index.
      for (int step = 1; step <= 2; step *= 2) {
        most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, step));
      }
      shrink[i] = 1.0f;
      if (most > maximum[i]) {
        shrink[i] = exponential(maximum[i] - most);
        maximum[i] = most;
        shrinks = true;
      }
      // A row that has seen nothing: -infinity - 0 has the weight 0, -infinity - -infinity has NaN.
      base[i] = maximum[i] > -infinity() ? maximum[i] : 0.0f;
    }
    for (int i = 0; i < 2; ++i) {
      float sum = 0.0f;
      TANDEM_UNROLL
      for (int n = 0; n < kMatrixChunk / 8; ++n) {
        for (int c = 0; c < 2; ++c) {
          float& score = scores[n][2 * i + c];
          score = exponential(score - base[i]);
          sum += score;
        }
      }
      sums[i] = sums[i] * shrink[i] + sum;
    }
    // The whole warp takes one branch. Rows whose maximum stays are multiplied by 1, exactly.
    if (__any_sync(kAllLanes, shrinks)) scale_out(shrink);
  }

  // Adds up the sums of the four lanes that share a row.
  __device__ __forceinline__ void total() {
    for (int i = 0; i < 2; ++i) {
      for (int step = 1; step <= 2; step *= 2) {
        sums[i] += __shfl_xor_sync(kAllLanes, sums[i], step);
      }
    }
  }

  // Joins the totals of the next split to those of the splits before it. A split of which a row
  // sees nothing leaves the row as it is. A split whose scores are NaN, which no maximum takes, has
  // NaN sums and makes the row NaN.
  __device__ __forceinline__ void merge(const SoftmaxTile& next) {
    for (int i = 0; i < 2; ++i) {
      if (!(next.maximum[i] == -infinity() && next.sums[i] == 0.0f)) {
        // A state that has seen nothing has the factor 0, not exp(-infinity - -infinity) = NaN.
        const bool before = maximum[i] > -infinity();
        const float most = next.maximum[i] > maximum[i] ? next.maximum[i] : maximum[i];
        const float own = before ? exponential(maximum[i] - most) : 0.0f;
        const float other = exponential(next.maximum[i] - most);
        sums[i] = fmaf(sums[i], own, next.sums[i] * other);
        maximum[i] = most;
        TANDEM_UNROLL
        for (int n = 0; n < kColumns / 8; ++n) {
          for (int c = 2 * i; c < 2 * i + 2; ++c) {
            out[n][c] = fmaf(out[n][c], own, next.out[n][c] * other);
          }
        }
      }
    }
  }

  // These copy sums to and from shared memory: lanes side by side, so that banks do not conflict. A
  // value goes to the lane of the same index, of this warp or another one. A lane has two maxima,
  // two sums and four outputs for each eight columns.
  static constexpr int kFloats = (kColumns / 2 + 4) * kWarp;
  template <class Visit>
  __device__ __forceinline__ void each(const Visit& visit) {
    for (int i = 0; i < 2; ++i) visit(i, maximum[i]), visit(2 + i, sums[i]);
    TANDEM_UNROLL
    for (int n = 0; n < kColumns / 8; ++n) {
      for (int i = 0; i < 4; ++i) visit(4 + n * 4 + i, out[n][i]);
    }
  }
  __device__ __forceinline__ void store(float* to) {
    each([&](int i, float value) { to[i * kWarp + matrix_lane()] = value; });
  }
  __device__ __forceinline__ void load(const float* from) {
    each([&](int i, float& value) { value = from[i * kWarp + matrix_lane()]; });
  }
};

}  // namespace tandem::kernels::cuda
