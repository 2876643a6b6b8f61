// What the packed and the paged form of attention share: a block of query rows absorbs one chunk of
// 16 positions. Both forms call nothing else for arithmetic, so they give the same bits (AT-1).
// All is f32: operands in bf16 have been widened, and an output in bf16 is rounded at the end.
#pragma once

#include "kernels/cpu/exponential.h"
#include "kernels/cpu/tile.h"
#include "kernels/ops/attention.h"

namespace tandem::kernels::TANDEM_CPU_ISA {

inline constexpr std::int64_t kRowsMax = 64;
static_assert(kGroupHeadsMax <= kRowsMax && kChunkPositions == kLanes);

// Consecutive queries of one sequence, for the heads that share one key/value head. Row
// h * queries + i is query i of head h.
struct QueryBlock {
  const float* q = nullptr;  // query 0 of head 0; heads lie `channels` apart
  std::int64_t row_stride = 0;
  std::int64_t queries = 0;
  std::int64_t heads = 0;  // queries * heads <= kRowsMax
  std::int64_t channels = 0;
  std::int64_t first_position = 0;  // of query 0
  float scale = 0;

  std::int64_t rows() const { return queries * heads; }
  // Positions of the chunk that row r may see, 0 … 16.
  std::int64_t visible(std::int64_t row, std::int64_t chunk) const {
    const std::int64_t count = first_position + row % queries + 1 - chunk * kChunkPositions;
    return count < 0 ? 0 : count > kChunkPositions ? kChunkPositions : count;
  }
};

// Queries per block for this many heads: a matter of shape alone.
inline std::int64_t queries_per_block(std::int64_t heads) {
  return kRowsMax / heads < kChunkPositions ? kRowsMax / heads : kChunkPositions;
}

// Keys of one chunk as [D][16] and values as [16][D].
struct Chunk {
  const float* keys = nullptr;
  const float* values = nullptr;
  std::int64_t index = 0;  // position / 16
};

// Running softmax of each row: maximum, sums per lane, weighted values.
struct alignas(64) SoftmaxRows {
  float sums[kRowsMax * kLanes];
  float out[kRowsMax * kHeadChannelsMax];  // rows are `channels` apart
  float maximum[kRowsMax];
};

// scores[r][16] = q[r] . keys, not scaled.
void chunk_scores(const QueryBlock& block, const float* keys, float* scores);

void absorb_chunk(const QueryBlock& block, const Chunk& chunk, SoftmaxRows& state);

// out[i, h, :] = the block's rows; lse[i, h] unless lse is null (lse_stride: H).
template <class T>
struct BlockOutput {
  T* out = nullptr;  // query 0 of head 0
  std::int64_t row_stride = 0;
  float* lse = nullptr;
  std::int64_t lse_stride = 0;
};
void finish(const QueryBlock& block, const SoftmaxRows& state, const BlockOutput<float>& output);
void finish(const QueryBlock& block, const SoftmaxRows& state, const BlockOutput<Bf16>& output);

}  // namespace tandem::kernels::TANDEM_CPU_ISA
