// Attention over chunks of 16 positions (attention_chunk.h). One task computes one sequence (or
// segment) and one key/value head: it takes the queries in blocks and lets each block absorb the
// chunks from position 0 on, up to the last one that a query of the block may see. The packed form
// gathers each chunk from rows; the paged form finds it laid out in a page.
//
// Backward has the loops the other way round: for each chunk all blocks of queries, so that a
// segment's gradients of the chunk's keys and values are added up before they go to dk and dv. The
// weights are computed anew from lse. Segments that share a prefix add to the same rows of dk and
// dv, so one thread computes them all, in the order of AT-2.
//
// Operands in bf16 are widened block by block and chunk by chunk, so that one arithmetic serves
// both element types. Gradients in bf16 are summed as f32 in the workspace and rounded once.
#include "kernels/ops/attention.h"

#include "kernels/cpu/attention_chunk.h"
#include "kernels/cpu/operators.h"
#include "runtime/device/parallel.h"

namespace tandem::kernels::TANDEM_CPU_ISA {

namespace {

constexpr std::int64_t kSequencesPerRange = 8;  // pairs of a sequence and a key/value head
constexpr std::int64_t kRowsPerRange = 64;

// The rows of a block or a chunk, widened.
struct WidenedRows {
  alignas(64) float at[kRowsMax * kHeadChannelsMax];
};

// The packed keys and values of one segment and key/value head, gathered chunk by chunk.
struct GatheredChunk {
  alignas(64) float keys_transposed[kHeadChannelsMax * kChunkPositions];
  alignas(64) float values[kChunkPositions * kHeadChannelsMax];
};

std::int64_t row_of(const Segment& segment, std::int64_t position) {
  return position < segment.prefix_len ? segment.prefix_begin + position
                                       : segment.begin + position - segment.prefix_len;
}

std::int64_t positions(const Segment& segment) { return segment.prefix_len + segment.len; }

std::int64_t chunks(std::int64_t count) { return (count + kChunkPositions - 1) / kChunkPositions; }

// `count` elements, a multiple of 16, as f32: f32 where they lie, bf16 widened to `to`.
const float* in_f32(const float* from, std::int64_t, float*) { return from; }
const float* in_f32(const Bf16* from, std::int64_t count, float* to) {
  for (std::int64_t i = 0; i < count; i += kLanes) store(to + i, load(from + i));
  return to;
}

// Copies a chunk's rows of one head, [16][D], zeros past the end of the segment.
template <class T>
void gather_rows(const Segment& segment, std::int64_t chunk, const TensorView& from,
                 std::int64_t head, float* to) {
  const std::int64_t channels = from.dim(2);
  for (std::int64_t j = 0; j < kChunkPositions; ++j, to += channels) {
    const std::int64_t position = chunk * kChunkPositions + j;
    if (position >= positions(segment)) {
      for (std::int64_t d = 0; d < channels; d += kLanes) store(to + d, zero());
      continue;
    }
    const T* row = data<T>(from) + row_of(segment, position) * from.row_stride + head * channels;
    for (std::int64_t d = 0; d < channels; d += kLanes) store(to + d, load(row + d));
  }
}

// The same as [D][16].
template <class T>
void gather_transposed(const Segment& segment, std::int64_t chunk, const TensorView& from,
                       std::int64_t head, float* to) {
  const std::int64_t channels = from.dim(2);
  for (std::int64_t j = 0; j < kChunkPositions; ++j) {
    const std::int64_t position = chunk * kChunkPositions + j;
    if (position >= positions(segment)) {
      for (std::int64_t d = 0; d < channels; ++d) to[d * kChunkPositions + j] = 0.0f;
      continue;
    }
    const T* row = data<T>(from) + row_of(segment, position) * from.row_stride + head * channels;
    for (std::int64_t d = 0; d < channels; ++d) to[d * kChunkPositions + j] = widened(row[d]);
  }
}

// The block of `segment`'s own queries from `query` on, for key/value head g. Queries in bf16 are
// widened to `rows`.
template <class T>
QueryBlock query_block(const TensorView& q, const Segment& segment, std::int64_t query,
                       std::int64_t groups, std::int64_t g, float scale, WidenedRows& rows) {
  const std::int64_t heads = q.dim(1) / groups, channels = q.dim(2);
  const std::int64_t left = segment.len - query, most = queries_per_block(heads);
  const T* from = data<T>(q) + (segment.begin + query) * q.row_stride + g * heads * channels;
  QueryBlock block{.row_stride = q.row_stride,
                   .queries = left < most ? left : most,
                   .heads = heads,
                   .channels = channels,
                   .first_position = segment.prefix_len + query,
                   .scale = scale};
  if constexpr (sizeof(T) == sizeof(float)) {
    block.q = from;
  } else {
    const std::int64_t width = heads * channels;
    for (std::int64_t i = 0; i < block.queries; ++i)
      in_f32(from + i * q.row_stride, width, rows.at + i * width);
    block.q = rows.at;
    block.row_stride = width;
  }
  return block;
}

template <class T>
void packed_segment(const AttentionPacked& op, const Segment& segment, std::int64_t g) {
  GatheredChunk gathered;
  WidenedRows queries;
  SoftmaxRows state;
  const std::int64_t groups = op.k.dim(1), query_heads = op.q.dim(1);
  for (std::int64_t query = 0; query < segment.len;) {
    const QueryBlock block = query_block<T>(op.q, segment, query, groups, g, op.scale, queries);
    for (std::int64_t c = 0; c < chunks(block.first_position + block.queries); ++c) {
      gather_transposed<T>(segment, c, op.k, g, gathered.keys_transposed);
      gather_rows<T>(segment, c, op.v, g, gathered.values);
      absorb_chunk(block, {.keys = gathered.keys_transposed, .values = gathered.values, .index = c},
                   state);
    }
    const std::int64_t row = segment.begin + query, head = g * block.heads;
    finish(block, state,
           BlockOutput<T>{.out = data<T>(op.out) + row * op.out.row_stride + head * block.channels,
                          .row_stride = op.out.row_stride,
                          .lse = op.lse.empty() ? nullptr : op.lse.f32() + row * query_heads + head,
                          .lse_stride = query_heads});
    query += block.queries;
  }
}

template <class T>
void paged_sequence(const AttentionPaged& op, std::int64_t sequence, std::int64_t g) {
  WidenedRows queries;
  GatheredChunk widened;
  SoftmaxRows state;
  const std::int64_t groups = op.k_pages.dim(1), channels = op.q.dim(2);
  const std::int64_t heads = op.q.dim(1) / groups;
  const std::int64_t page_positions = op.k_pages.dim(2), page_head = page_positions * channels;
  const std::int32_t* pages = op.block_tables.i32() + sequence * op.block_tables.row_stride;
  const std::int32_t* begin = op.query_begin.i32() + sequence;
  const Segment own{.prefix_len = op.first_position.i32()[sequence],
                    .begin = begin[0],
                    .len = begin[1] - begin[0]};
  for (std::int64_t query = 0; query < own.len;) {
    const QueryBlock block = query_block<T>(op.q, own, query, groups, g, op.scale, queries);
    for (std::int64_t c = 0; c < chunks(block.first_position + block.queries); ++c) {
      const std::int64_t position = c * kChunkPositions;
      // Pages have a multiple of 16 positions, so a chunk lies on one page. A chunk of keys and one
      // of values have the same offset, although one is [D][16] and the other [16][D].
      const std::int64_t offset = (pages[position / page_positions] * groups + g) * page_head +
                                  position % page_positions * channels;
      const std::int64_t elements = kChunkPositions * channels;
      absorb_chunk(block,
                   {.keys = in_f32(data<T>(op.k_pages) + offset, elements, widened.keys_transposed),
                    .values = in_f32(data<T>(op.v_pages) + offset, elements, widened.values),
                    .index = c},
                   state);
    }
    T* out = data<T>(op.out) + (own.begin + query) * op.out.row_stride + g * heads * channels;
    finish(block, state, BlockOutput<T>{.out = out, .row_stride = op.out.row_stride});
    query += block.queries;
  }
}

// Weights and score gradients of a block of rows against one chunk.
struct ChunkGradients {
  alignas(64) float weights[kRowsMax * kChunkPositions];
  alignas(64) float scores[kRowsMax * kChunkPositions];
};

// One chunk of one segment and head in backward: its operands and its gradients.
struct BackwardChunk {
  std::int64_t index = 0;
  alignas(64) float keys[kChunkPositions * kHeadChannelsMax];             // [16][D]
  alignas(64) float keys_transposed[kHeadChannelsMax * kChunkPositions];  // [D][16]
  alignas(64) float values_transposed[kHeadChannelsMax * kChunkPositions];
  alignas(64) float dkeys[kChunkPositions * kHeadChannelsMax];
  alignas(64) float dvalues[kChunkPositions * kHeadChannelsMax];
};

// A block of queries in backward, with the gradients of its outputs.
struct BackwardBlock {
  QueryBlock queries;
  QueryBlock douts;       // the same rows of dout
  std::int64_t row = 0;   // the row of query 0
  std::int64_t head = 0;  // the first of the block's heads
};

// With p the softmax weights and dp = dout . v:  ds = p * (dp - dout . out) * scale.
// chunk_scores serves twice: with q and keys for the scores, with dout and values for dp. Weights
// of positions that a row may not see are 0, and so are their gradients.
template <class T>
void chunk_gradients(const AttentionBackward& op, const BackwardBlock& rows,
                     const BackwardChunk& chunk, ChunkGradients& to) {
  const QueryBlock &block = rows.queries, &douts = rows.douts;
  const std::int64_t row = rows.row, head = rows.head;
  chunk_scores(block, chunk.keys_transposed, to.weights);
  chunk_scores(douts, chunk.values_transposed, to.scores);
  const std::int64_t query_heads = op.q.dim(1);
  for (std::int64_t r = 0; r < block.rows(); ++r) {
    const std::int64_t h = r / block.queries, i = r % block.queries;
    const float* dout = douts.q + i * douts.row_stride + h * block.channels;
    const T* out = data<T>(op.out) + (row + i) * op.out.row_stride + (head + h) * block.channels;
    F32x16 products = zero();
    for (std::int64_t d = 0; d < block.channels; d += kLanes) {
      products = fma(load(dout + d), load(out + d), products);
    }
    const F32x16 mean = set(reduce_add(products));
    const F32x16 lse = set(op.lse.f32()[(row + i) * query_heads + head + h]);
    float *weights = to.weights + r * kChunkPositions, *scores = to.scores + r * kChunkPositions;
    const Mask16 visible = first(static_cast<int>(block.visible(r, chunk.index)));
    const F32x16 p = select(visible, exp(load(weights) * set(block.scale) - lse), zero());
    store(weights, p);
    store(scores, p * (load(scores) - mean) * set(block.scale));
  }
}

// Adds a block's part of dq, and to the chunk's gradients: dk += ds^T q, dv += p^T dout, queries
// ascending, heads one after another.
template <class T>
void backward_block(const AttentionBackward& op, const BackwardBlock& rows, BackwardChunk& chunk) {
  ChunkGradients gradients;
  chunk_gradients<T>(op, rows, chunk, gradients);
  const QueryBlock& block = rows.queries;
  const std::int64_t channels = block.channels;
  for (std::int64_t h = 0; h < block.heads; ++h) {
    const std::int64_t first = h * block.queries * kChunkPositions;
    const std::int64_t column = (rows.head + h) * channels;
    multiply(Product<float>{.a = gradients.scores + first,
                            .a_row = kChunkPositions,
                            .a_step = 1,
                            .b = chunk.keys,
                            .b_step = channels,
                            .c = op.dq.f32() + rows.row * op.dq.row_stride + column,
                            .c_row = op.dq.row_stride,
                            .rows = block.queries,
                            .columns = channels,
                            .steps = kChunkPositions,
                            .sum = chunk.index > 0 ? Sum::kContinue : Sum::kWrite});
    Product<float> to_keys{.a = gradients.scores + first,
                           .a_row = 1,
                           .a_step = kChunkPositions,
                           .b = block.q + h * channels,
                           .b_step = block.row_stride,
                           .c = chunk.dkeys,
                           .c_row = channels,
                           .rows = kChunkPositions,
                           .columns = channels,
                           .steps = block.queries,
                           .sum = Sum::kContinue};
    multiply(to_keys);
    to_keys.a = gradients.weights + first;
    to_keys.b = rows.douts.q + h * channels;
    to_keys.b_step = rows.douts.row_stride;
    to_keys.c = chunk.dvalues;
    multiply(to_keys);
  }
}

// Adds a chunk's [16][D] gradients to the rows of its positions, own rows and those of a prefix.
void scatter_rows(const Segment& segment, std::int64_t chunk, const float* from,
                  const TensorView& to, std::int64_t head) {
  const std::int64_t channels = to.dim(2);
  for (std::int64_t j = 0; j < kChunkPositions; ++j, from += channels) {
    const std::int64_t position = chunk * kChunkPositions + j;
    if (position >= positions(segment)) return;
    float* row = to.f32() + row_of(segment, position) * to.row_stride + head * channels;
    for (std::int64_t d = 0; d < channels; d += kLanes)
      store(row + d, load(row + d) + load(from + d));
  }
}

// Clears the segment's own rows. Rows of a prefix are cleared by the segment that computes them,
// which comes first.
void clear_rows(const Segment& segment, const TensorView& to, std::int64_t head) {
  const std::int64_t channels = to.dim(2);
  for (std::int64_t i = 0; i < segment.len; ++i) {
    float* row = to.f32() + (segment.begin + i) * to.row_stride + head * channels;
    for (std::int64_t d = 0; d < channels; d += kLanes) store(row + d, zero());
  }
}

template <class T>
void backward_segment(const AttentionBackward& op, const Segment& segment, std::int64_t g) {
  BackwardChunk chunk;
  WidenedRows queries, douts;
  const std::int64_t groups = op.k.dim(1), heads = op.q.dim(1) / groups, channels = op.q.dim(2);
  clear_rows(segment, op.dk, g);
  clear_rows(segment, op.dv, g);
  for (std::int64_t c = 0; c < chunks(positions(segment)); ++c) {
    chunk.index = c;
    gather_rows<T>(segment, c, op.k, g, chunk.keys);
    gather_transposed<T>(segment, c, op.k, g, chunk.keys_transposed);
    gather_transposed<T>(segment, c, op.v, g, chunk.values_transposed);
    for (std::int64_t i = 0; i < kChunkPositions * channels; i += kLanes) {
      store(chunk.dkeys + i, zero());
      store(chunk.dvalues + i, zero());
    }
    for (std::int64_t query = 0; query < segment.len;) {
      const std::int64_t own = queries_per_block(heads), left = segment.len - query;
      const std::int64_t next = query + (left < own ? left : own);
      // A block before the chunk sees none of its positions.
      if (segment.prefix_len + next > c * kChunkPositions) {
        const auto block = [&](const TensorView& of, WidenedRows& rows) {
          return query_block<T>(of, segment, query, groups, g, op.scale, rows);
        };
        backward_block<T>(op,
                          {.queries = block(op.q, queries),
                           .douts = block(op.dout, douts),
                           .row = segment.begin + query,
                           .head = g * heads},
                          chunk);
      }
      query = next;
    }
    scatter_rows(segment, c, chunk.dkeys, op.dk, g);
    scatter_rows(segment, c, chunk.dvalues, op.dv, g);
  }
}

template <class T>
void packed(const Stream& stream, const AttentionPacked& op) {
  const auto segments = static_cast<std::int64_t>(op.segments.size());
  const std::int64_t groups = op.k.dim(1);
  device::parallel_for(stream.pool, segments * groups, kSequencesPerRange,
                       [&](std::int64_t begin, std::int64_t end) {
                         for (std::int64_t i = begin; i < end; ++i) {
                           packed_segment<T>(op, op.segments.data()[i / groups], i % groups);
                         }
                       });
}

template <class T>
void paged(const Stream& stream, const AttentionPaged& op) {
  const std::int64_t sequences = op.first_position.dim(0), groups = op.k_pages.dim(1);
  device::parallel_for(stream.pool, sequences * groups, kSequencesPerRange,
                       [&](std::int64_t begin, std::int64_t end) {
                         for (std::int64_t i = begin; i < end; ++i) {
                           paged_sequence<T>(op, i / groups, i % groups);
                         }
                       });
}

// Computes gradients in f32. A segment without prefix and the segments behind it that use its rows
// are one piece of work, because they add to the same rows of dk and dv. The task of the first one
// does them all; the tasks of the others do nothing.
template <class T>
void backward(const Stream& stream, const AttentionBackward& op) {
  const auto count = static_cast<std::int64_t>(op.segments.size());
  const Segment* segments = op.segments.data();
  const std::int64_t groups = op.k.dim(1);
  device::parallel_for(stream.pool, count * groups, kSequencesPerRange,
                       [&](std::int64_t begin, std::int64_t end) {
                         for (std::int64_t i = begin; i < end; ++i) {
                           const std::int64_t g = i % groups;
                           std::int64_t s = i / groups;
                           if (segments[s].prefix_len > 0) continue;
                           do {
                             backward_segment<T>(op, segments[s], g);
                           } while (++s < count && segments[s].prefix_len > 0);
                         }
                       });
}

void round_rows(const Stream& stream, const TensorView& from, const TensorView& to) {
  const std::int64_t width = from.row_elements();
  device::parallel_for(stream.pool, from.dim(0), kRowsPerRange,
                       [&](std::int64_t begin, std::int64_t end) {
                         for (std::int64_t r = begin; r < end; ++r) {
                           const float* row = from.f32() + r * from.row_stride;
                           Bf16* rounded = data<Bf16>(to) + r * to.row_stride;
                           for (std::int64_t i = 0; i < width; i += kLanes)
                             store(rounded + i, load(row + i));
                         }
                       });
}

// A dense f32 view of the same shape, on `memory`.
TensorView sums_of(const TensorView& view, float* memory) {
  TensorView sums = view;
  sums.data = memory;
  sums.dtype = device::DType::kF32;
  sums.row_stride = view.row_elements();
  return sums;
}

}  // namespace

void attention_packed(const Stream& stream, const AttentionPacked& op) {
  with_type(op.q.dtype, [&]<class T>(T) { packed<T>(stream, op); });
}

void attention_paged(const Stream& stream, const AttentionPaged& op) {
  with_type(op.q.dtype, [&]<class T>(T) { paged<T>(stream, op); });
}

void attention_backward(const Stream& stream, const AttentionBackward& op) {
  if (op.q.dtype == device::DType::kF32) return backward<float>(stream, op);
  // The same call with gradients in f32, which are in the workspace one behind the other.
  AttentionBackward sums = op;
  sums.dq = sums_of(op.dq, op.workspace.f32());
  sums.dk = sums_of(op.dk, sums.dq.f32() + op.dq.elements());
  sums.dv = sums_of(op.dv, sums.dk.f32() + op.dk.elements());
  backward<Bf16>(stream, sums);
  round_rows(stream, sums.dq, op.dq);
  round_rows(stream, sums.dk, op.dk);
  round_rows(stream, sums.dv, op.dv);
}

}  // namespace tandem::kernels::TANDEM_CPU_ISA
