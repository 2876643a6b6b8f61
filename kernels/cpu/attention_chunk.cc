// The operations here have the order that AT-1 promises: scores by one chain over the channels, a
// maximum and sums by lanes, weighted values by one chain over the positions that a row sees. None
// of them depends on which other rows are in the block.
#include "kernels/cpu/attention_chunk.h"

namespace tandem::kernels::TANDEM_CPU_ISA {

void chunk_scores(const QueryBlock& block, const float* keys, float* scores) {
  // A product needs rows at one distance. With one query the heads are the rows of one product;
  // with several, each head's queries are the rows of a product of their own.
  const bool by_head = block.queries > 1;
  const std::int64_t products = by_head ? block.heads : 1;
  for (std::int64_t h = 0; h < products; ++h) {
    multiply(Product<float>{.a = block.q + h * block.channels,
                            .a_row = by_head ? block.row_stride : block.channels,
                            .a_step = 1,
                            .b = keys,
                            .b_step = kChunkPositions,
                            .c = scores + h * block.queries * kChunkPositions,
                            .c_row = kChunkPositions,
                            .rows = by_head ? block.queries : block.heads,
                            .columns = kChunkPositions,
                            .steps = block.channels});
  }
}

namespace {

// Turns a row's scores into weights relative to the row's new maximum and rescales the row's sums
// so far.
void weigh_row(const QueryBlock& block, std::int64_t row, int visible, bool first_chunk,
               float* scores, SoftmaxRows& state) {
  const F32x16 scaled = load(scores) * set(block.scale);
  const F32x16 seen = select(first(visible), scaled, set(-kInfinity));
  const float in_chunk = reduce_max(seen);
  float* sums = state.sums + row * kLanes;
  if (first_chunk) {
    const F32x16 weights = exp(seen - set(in_chunk));
    state.maximum[row] = in_chunk;
    store(scores, weights);
    store(sums, weights);
    return;
  }
  const float before = state.maximum[row];
  F32x16 sum = load(sums);
  // While the maximum stays the same, nothing is rescaled.
  if (in_chunk > before) {
    const F32x16 shrink = exp(set(before) - set(in_chunk));
    float* out = state.out + row * block.channels;
    for (std::int64_t d = 0; d < block.channels; d += kLanes) {
      store(out + d, load(out + d) * shrink);
    }
    sum = sum * shrink;
    state.maximum[row] = in_chunk;
  }
  const F32x16 weights = exp(seen - set(state.maximum[row]));
  store(scores, weights);
  store(sums, sum + weights);
}

}  // namespace

void absorb_chunk(const QueryBlock& block, const Chunk& chunk, SoftmaxRows& state) {
  alignas(64) float scores[kRowsMax * kChunkPositions];
  const std::int64_t rows = block.rows();
  const bool first_chunk = chunk.index == 0;
  chunk_scores(block, chunk.keys, scores);
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto visible = static_cast<int>(block.visible(r, chunk.index));
    if (visible > 0) {
      weigh_row(block, r, visible, first_chunk, scores + r * kChunkPositions, state);
    }
  }
  // Values past a row's last visible position are not read: they may be NaN, and their weight of 0
  // would not silence them. Rows that see equally many positions are multiplied together.
  for (std::int64_t r = 0, end = 0; r < rows; r = end) {
    const std::int64_t visible = block.visible(r, chunk.index);
    for (end = r + 1; end < rows && block.visible(end, chunk.index) == visible;) ++end;
    if (visible == 0) continue;
    multiply(Product<float>{.a = scores + r * kChunkPositions,
                            .a_row = kChunkPositions,
                            .a_step = 1,
                            .b = chunk.values,
                            .b_step = block.channels,
                            .c = state.out + r * block.channels,
                            .c_row = block.channels,
                            .rows = end - r,
                            .columns = block.channels,
                            .steps = visible,
                            .sum = first_chunk ? Sum::kWrite : Sum::kContinue});
  }
}

namespace {

template <class T>
void finish_rows(const QueryBlock& block, const SoftmaxRows& state, const BlockOutput<T>& output) {
  for (std::int64_t r = 0; r < block.rows(); ++r) {
    const std::int64_t h = r / block.queries, i = r % block.queries;
    const float sum = reduce_add(load(state.sums + r * kLanes));
    const F32x16 factor = set(1.0f) / set(sum);
    const float* from = state.out + r * block.channels;
    T* to = output.out + i * output.row_stride + h * block.channels;
    for (std::int64_t d = 0; d < block.channels; d += kLanes) {
      store(to + d, load(from + d) * factor);
    }
    if (output.lse != nullptr) {
      output.lse[i * output.lse_stride + h] = state.maximum[r] + log(sum);
    }
  }
}

}  // namespace

void finish(const QueryBlock& block, const SoftmaxRows& state, const BlockOutput<float>& output) {
  finish_rows(block, state, output);
}
void finish(const QueryBlock& block, const SoftmaxRows& state, const BlockOutput<Bf16>& output) {
  finish_rows(block, state, output);
}

}  // namespace tandem::kernels::TANDEM_CPU_ISA
