// The arithmetic that the packed and the paged form of attention share: a block of query rows
// absorbs one chunk of 16 positions after another, with a running softmax (Milakov and Gimelshein,
// 2018). Both forms call nothing else for arithmetic, so they give the same bits (AT-1).
//
// All is f32: operands in bf16 have been widened, and an output in bf16 is rounded at the end. For
// each block of queries:
//   absorb_chunk   once per chunk 0, 1, …, in this order; chunk 0 starts the sums
//   finish         once, divides by the sum of the weights
#pragma once

#include "kernels/cpu/exponential.h"
#include "kernels/cpu/tile.h"
#include "kernels/ops/attention.h"

namespace tandem::kernels::TANDEM_CPU_ISA {

inline constexpr std::int64_t kRowsMax = 64;  // rows of a block
// A block holds at least one query of all heads of a group, and a chunk's scores are one vector.
static_assert(kGroupHeadsMax <= kRowsMax && kChunkPositions == kLanes);

// Consecutive queries of one sequence, for the heads that share one key/value head. Row
// h * queries + i is query i of head h.
struct QueryBlock {
  const float* q = nullptr;     // query 0 of head 0; heads lie `channels` apart
  std::int64_t row_stride = 0;  // elements from query to query
  std::int64_t queries = 0;
  std::int64_t heads = 0;           // queries * heads <= kRowsMax
  std::int64_t channels = 0;        // in a head: D
  std::int64_t first_position = 0;  // where query 0 stands
  float scale = 0;

  std::int64_t rows() const { return queries * heads; }
  // How many positions of the chunk row r may see, 0 … 16. They are the first ones.
  std::int64_t visible(std::int64_t row, std::int64_t chunk) const {
    const std::int64_t count = first_position + row % queries + 1 - chunk * kChunkPositions;
    return count < 0 ? 0 : count > kChunkPositions ? kChunkPositions : count;
  }
};

// Queries per block where this many heads share a key/value head, 16 at most. The cut depends on
// shapes alone.
inline std::int64_t queries_per_block(std::int64_t heads) {
  return kRowsMax / heads < kChunkPositions ? kRowsMax / heads : kChunkPositions;
}

// Keys of one chunk as [D][16] and values as [16][D].
struct Chunk {
  const float* keys = nullptr;
  const float* values = nullptr;
  std::int64_t index = 0;  // position / 16
};

// Running softmax of each row, over the chunks absorbed so far. The first chunk writes all parts of
// it, so the memory need not be cleared before.
struct alignas(64) SoftmaxRows {
  float sums[kRowsMax * kLanes];           // of weights exp(score - maximum), lane by lane
  float out[kRowsMax * kHeadChannelsMax];  // sums of weight * value; rows are `channels` apart
  float maximum[kRowsMax];                 // of the scaled scores
};

// scores[r][16] = q[r] . keys, not scaled, for all 16 positions whether or not row r may see them.
void chunk_scores(const QueryBlock& block, const float* keys, float* scores);

// Adds one chunk to the state. For a row, values past its last visible position are not read. Keys
// past that position are read, but their scores are dropped. So both may hold NaN.
void absorb_chunk(const QueryBlock& block, const Chunk& chunk, SoftmaxRows& state);

// Where finish() writes: out[i, h, :] for query i and head h, and lse[i, h] unless lse is null.
template <class T>
struct BlockOutput {
  T* out = nullptr;             // query 0 of head 0
  std::int64_t row_stride = 0;  // elements from query to query
  float* lse = nullptr;         // the entry of query 0 and head 0
  std::int64_t lse_stride = 0;  // H
};
void finish(const QueryBlock& block, const SoftmaxRows& state, const BlockOutput<float>& output);
void finish(const QueryBlock& block, const SoftmaxRows& state, const BlockOutput<Bf16>& output);

}  // namespace tandem::kernels::TANDEM_CPU_ISA
