// Gradients of packed attention in f32, for attention.cu alone.
//
//   p  = exp(q . k * scale - lse)         mean = dout . out, which attention.cu has computed
//   ds = p * (dout . v - mean) * scale
//   dq = sum over keys of ds * k          query_gradient_kernel: a block has 32 rows of queries
//   dk = sum over queries of ds * q       key_gradient_kernel: a block has 16 keys
//   dv = sum over queries of p * dout
//
// No sum is shared by blocks, so there are no atomic additions and all orders of sums are fixed
// (AT-2). The price is that both passes compute the weights p.
#pragma once

#include "kernels/cuda/attention_gradients.cuh"
#include "kernels/cuda/attention_tile.cuh"
#include "kernels/cuda/primitives.cuh"
#include "kernels/ops/attention.h"

namespace tandem::kernels::cuda {

namespace {

// A block has four warps. In the queries' pass each has 8 of the 32 rows of queries; in the keys'
// pass each adds up 4 of the 16 keys. kColumns is the number of channels of a lane, a constant so
// that sums are in registers.
constexpr int kGradientWarps = 4;
constexpr int kGradientThreads = kGradientWarps * kWarp;
constexpr int kGradientRows = kGradientWarps * kWarpRows;
constexpr int kWarpKeys = kChunk / kGradientWarps;
static_assert(kWarpKeys == 4);  // one float4 of weights

// A block's dynamic shared memory, in both passes.
struct GradientShared {
  float* q;        // [32][D + 4]
  float* dout;     // [32][D + 4]
  float* weights;  // [32][16]: p; used by the keys' pass
  float* scores;   // ds: [32][16] in the keys' pass, [warps][16][8] in the queries' pass
  float* keys;     // [D][17]
  float* values;   // [D][17]
};

// Bytes of GradientShared. The strides are those of attention_tile.cuh.
inline std::size_t gradient_shared_bytes(std::int64_t channels) {
  const std::int64_t floats =
      2 * kGradientRows * (channels + 4 + kChunk) + 2 * channels * kKeyStride;
  return static_cast<std::size_t>(floats) * sizeof(float);
}

__device__ __forceinline__ GradientShared cut_gradient_shared(int channels) {
  GradientShared shared{.q = dynamic_shared<float>()};
  shared.dout = shared.q + kGradientRows * row_stride(channels);
  shared.weights = shared.dout + kGradientRows * row_stride(channels);
  shared.scores = shared.weights + kGradientRows * kChunk;
  shared.keys = shared.scores + kGradientRows * kChunk;
  shared.values = shared.keys + channels * kKeyStride;
  return shared;
}

// Computes the lane's weights p and score gradients ds, for the lane's rows and the lane's key
// (attention_tile.cuh), from the operands in shared memory. seen(r) says whether row r of the block
// sees that key. Where it does not, both are 0.
template <class Seen>
__device__ __forceinline__ void weigh_gradients(const Gradients<float>& op, const Block& block,
                                                const GradientShared& shared, const Seen& seen,
                                                float (&weights)[kLaneRows],
                                                float (&scores)[kLaneRows]) {
  dot_keys(shared.q, shared.keys, block.channels, weights);
  dot_keys(shared.dout, shared.values, block.channels, scores);
  for (int i = 0; i < kLaneRows; ++i) {
    const int r = lane_row() + i;
    float weight = 0, mean = 0;
    if (r < block.rows() && seen(r)) {
      const std::int64_t at =
          (block.row + r / block.heads) * op.heads + block.head + r % block.heads;
      weight = exponential(weights[i] * block.scale - op.lse[at]);
      mean = op.means[at];
    }
    weights[i] = weight;
    // dout . v of a value that the row does not see may be NaN, so it is not multiplied by 0.
    scores[i] = weight == 0.0f ? 0.0f : weight * (scores[i] - mean) * block.scale;
  }
}

// dq of one block of queries: the chunks of all positions that the block sees, ascending. Each warp
// adds up the rows of its own; the chunk's keys and values are shared by the block.
template <int kColumns>
__global__ void query_gradient_kernel(Gradients<float> op) {
  Segment segment;
  Block block;
  if (!find_queries(op, kGradientRows, segment, block)) return;
  const std::int64_t group = blockIdx.y;
  const GradientShared shared = cut_gradient_shared(block.channels);
  load_rows(op.q, block, kGradientRows, shared.q);
  load_rows(op.dout, block, kGradientRows, shared.dout);
  float sums[kWarpRows][kColumns] = {};
  for (std::int64_t chunk = 0; chunk * kChunk < block.positions(); ++chunk) {
    const auto row = [&](int j) {
      const std::int64_t position = chunk * kChunk + j;
      return position < block.positions() ? row_of(segment, position) : kNoRow;
    };
    __syncthreads();  // all warps have read the chunk before
    // Values are transposed as keys are: dout . v is computed as q . k is.
    load_chunk<true>(op.k, group, row, shared.keys);
    load_chunk<true>(op.v, group, row, shared.values);
    __syncthreads();
    float weights[kLaneRows], scores[kLaneRows];
    weigh_gradients(
        op, block, shared,
        [&](int r) { return lane_key() < block.visible(r, chunk * kChunk, kChunk); }, weights,
        scores);
    float* shared_scores = shared.scores + warp_row() * kChunk;
    share(scores, shared_scores);
    add_rows(block, chunk, shared_scores, {.data = shared.keys, .row = 1, .channel = kKeyStride},
             sums);
  }
  for (int r = 0; r < kWarpRows && warp_row() + r < block.rows(); ++r) {
    const int row = warp_row() + r;
    float* to = op.dq.at(block.row + row / block.heads, block.head + row % block.heads);
    for (int c = 0; c < kColumns; ++c) {
      const int d = lane_index() + c * kWarp;
      if (d < block.channels) to[d] = sums[r][c];
    }
  }
}

// Adds one block of queries to dk and dv of the 16 keys in shared memory. The first of the keys is
// at `position` of the queries' sequence, and the first `keys` of them belong to that sequence. A
// warp adds up four keys, for which it reads all rows, ascending; queries ascend with the rows.
template <int kColumns>
__device__ __forceinline__ void add_queries(const Gradients<float>& op, const Block& block,
                                            std::int64_t position, int keys,
                                            const GradientShared& shared,
                                            float (&dk)[kWarpKeys][kColumns],
                                            float (&dv)[kWarpKeys][kColumns]) {
  __syncthreads();
  load_rows(op.q, block, kGradientRows, shared.q);
  load_rows(op.dout, block, kGradientRows, shared.dout);
  __syncthreads();
  float weights[kLaneRows], scores[kLaneRows];
  const auto seen = [&](int r) {
    return lane_key() < keys && position + lane_key() <= block.first_position + r / block.heads;
  };
  weigh_gradients(op, block, shared, seen, weights, scores);
  for (int i = 0; i < kLaneRows; ++i) {
    shared.weights[(lane_row() + i) * kChunk + lane_key()] = weights[i];
    shared.scores[(lane_row() + i) * kChunk + lane_key()] = scores[i];
  }
  __syncthreads();
  const int first = static_cast<int>(threadIdx.x) / kWarp * kWarpKeys;
  for (int r = 0; r < block.rows(); ++r) {
    const float* p = shared.weights + r * kChunk + first;
    const float* ds = shared.scores + r * kChunk + first;
    for (int c = 0; c < kColumns; ++c) {
      const int d = lane_index() + c * kWarp;
      if (d >= block.channels) continue;
      const float q = shared.q[r * row_stride(block.channels) + d];
      const float dout = shared.dout[r * row_stride(block.channels) + d];
      for (int j = 0; j < kWarpKeys; ++j) {
        dk[j][c] = fmaf(ds[j], q, dk[j][c]);
        dv[j][c] = fmaf(p[j], dout, dv[j][c]);
      }
    }
  }
}

// dk and dv of 16 consecutive own rows of a segment, and of one key/value head.
template <int kColumns>
__global__ void key_gradient_kernel(Gradients<float> op) {
  const Piece piece = find_piece(op.segments, op.count, kChunk, blockIdx.x);
  if (piece.segment == op.count) return;
  const Segment own = op.segments[piece.segment];
  const std::int64_t group = blockIdx.y, first = piece.index * kChunk;
  const Block shape = shape_of(op);
  const int queries = kGradientRows / shape.heads, channels = shape.channels;
  const int count = own.len - first < kChunk ? static_cast<int>(own.len - first) : kChunk;
  const GradientShared shared = cut_gradient_shared(channels);
  const auto row = [&](int j) { return j < count ? own.begin + first + j : kNoRow; };
  load_chunk<true>(op.k, group, row, shared.keys);
  load_chunk<true>(op.v, group, row, shared.values);
  float dk[kWarpKeys][kColumns] = {}, dv[kWarpKeys][kColumns] = {};
  // The segment's own queries, then those of the segments that use its rows as a prefix, which
  // follow it. For such a segment only the keys within its prefix_len count.
  const std::int64_t position = own.prefix_len + first;
  for (std::int64_t s = piece.segment; s < op.count; ++s) {
    const Segment segment = op.segments[s];
    if (s > piece.segment && (own.prefix_len > 0 || segment.prefix_len == 0)) break;
    const std::int64_t keys = s == piece.segment ? std::int64_t{count} : segment.prefix_len - first;
    if (keys <= 0) continue;
    for (std::int64_t query = 0; query < segment.len; query += queries) {
      const Block block = block_of(segment, query, queries, shape);
      // None of these queries sees a key of the piece. The whole block of threads goes on.
      if (block.positions() <= position) continue;
      add_queries(op, block, position, keys < count ? static_cast<int>(keys) : count, shared, dk,
                  dv);
    }
  }
  for (int j = 0; j < kWarpKeys; ++j) {
    const int key = static_cast<int>(threadIdx.x) / kWarp * kWarpKeys + j;
    if (key >= count) break;
    for (int c = 0; c < kColumns; ++c) {
      const int d = lane_index() + c * kWarp;
      if (d >= channels) continue;
      op.dk.at(row(key), group)[d] = dk[j][c];
      op.dv.at(row(key), group)[d] = dv[j][c];
    }
  }
}

}  // namespace

}  // namespace tandem::kernels::cuda
