// How attention's rows are dealt to blocks of threads, for every dtype and form, and the operands
// that kernels are given.
//
// Row r of a block is query r / heads, head r % heads of the heads that share one key/value head.
// In the grids of attention blockIdx.y is the key/value head and blockIdx.x, as a rule, a piece of
// a sequence. Lengths of sequences are in the device's memory, so the host launches as many blocks
// as there may be pieces (pieces_max), and each block finds its own piece or ends.
#pragma once

#include <cstdint>
#include <iterator>

#include "kernels/cuda/numbers.cuh"
#include "kernels/cuda/reduce.cuh"
#include "kernels/ops/attention.h"

namespace tandem::kernels::cuda {

__device__ __forceinline__ int lane_index() { return static_cast<int>(threadIdx.x) % kWarp; }

// The queries of one block, all of one sequence.
struct Block {
  std::int64_t row = 0;             // the row of query 0 in [T, …]
  std::int64_t first_position = 0;  // position of query 0 in its sequence
  int queries = 0;
  int heads = 0;          // number of heads that share the key/value head
  int channels = 0;       // D
  std::int64_t head = 0;  // the first of the heads
  float scale = 0;

  __device__ __forceinline__ int rows() const { return queries * heads; }
  // Positions that the block's last query sees, and so the most of any row.
  __device__ __forceinline__ std::int64_t positions() const { return first_position + queries; }
  // Row r sees the positions 0 … seen(r) - 1; rows past the last see none.
  __device__ __forceinline__ std::int64_t seen(int r) const {
    return r < rows() ? first_position + r / heads + 1 : 0;
  }
  // How many of the `most` positions from `begin` on row r sees.
  __device__ __forceinline__ int visible(int r, std::int64_t begin, int most) const {
    const std::int64_t count = seen(r) - begin;
    return count < 0 ? 0 : count > most ? most : static_cast<int>(count);
  }
};

// A block of the heads that share the key/value head blockIdx.y, without queries. Form is Packed,
// Paged or Gradients.
template <class Form>
__device__ __forceinline__ Block shape_of(const Form& op) {
  const int heads = op.heads / op.groups;
  return {.heads = heads,
          .channels = static_cast<int>(op.q.channels),
          .head = std::int64_t{blockIdx.y} * heads,
          .scale = op.scale};
}

// A block of the segment's own queries from `query` on, at most `most`, with the heads of `shape`.
__device__ __forceinline__ Block block_of(const Segment& segment, std::int64_t query, int most,
                                          Block shape) {
  const std::int64_t left = segment.len - query;
  shape.row = segment.begin + query;
  shape.first_position = segment.prefix_len + query;
  shape.queries = left < most ? static_cast<int>(left) : most;
  return shape;
}

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

// The row of a position of the segment's sequence, which may be a row of its prefix.
__device__ __forceinline__ std::int64_t row_of(const Segment& segment, std::int64_t position) {
  return position < segment.prefix_len ? segment.prefix_begin + position
                                       : segment.begin + position - segment.prefix_len;
}

inline constexpr std::int64_t kNoRow = -1;  // instead of a row: zeros, nothing is read

// One piece of work, where segments are cut into pieces of a fixed number of own rows.
struct Piece {
  std::int64_t segment = 0;  // the number of segments if there is no such piece
  std::int64_t index = 0;    // the piece's index within its segment
};

// The piece with number `piece`, counted over all segments. All lanes of a warp call together and
// get the same: they add up the pieces of 32 segments at a time and look for the segment in which
// the sum passes `piece`.
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

// The operands of packed attention, as kernels take them; attention.h defines them.
template <class T>
struct Packed {
  Heads<T> q, k, v, out;
  const Segment* segments;
  std::int64_t count;
  float* lse;  // [T, H], or null
  int heads, groups;
  float scale;
};

template <class T>
Packed<T> packed_of(const AttentionPacked& op) {
  return {.q = heads_of<T>(op.q),
          .k = heads_of<T>(op.k),
          .v = heads_of<T>(op.v),
          .out = heads_of<T>(op.out),
          .segments = op.segments.data(),
          .count = std::ssize(op.segments),
          .lse = data<float>(op.lse),
          .heads = static_cast<int>(op.q.dim(1)),
          .groups = static_cast<int>(op.k.dim(1)),
          .scale = op.scale};
}

// The sequences that a kernel computes. A step of both kinds takes two kernels.
enum class Which : unsigned char {
  kAll,
  kOne,      // sequences of one query; sequence s has the blocks with blockIdx.x = s
  kSeveral,  // sequences of more than one query
};

// The operands of paged attention, as kernels take them.
template <class T>
struct Paged {
  Heads<T> q, out;
  const T* k_pages;
  const T* v_pages;
  const std::int32_t* tables;
  std::int64_t table_stride;
  const std::int32_t* query_begin;
  const std::int32_t* first_position;
  std::int64_t sequences, page_positions;
  int heads, groups;
  float scale;
  Which which = Which::kAll;
};

template <class T>
Paged<T> paged_of(const AttentionPaged& op) {
  return {.q = heads_of<T>(op.q),
          .out = heads_of<T>(op.out),
          .k_pages = data<T>(op.k_pages),
          .v_pages = data<T>(op.v_pages),
          .tables = data<std::int32_t>(op.block_tables),
          .table_stride = op.block_tables.row_stride,
          .query_begin = data<std::int32_t>(op.query_begin),
          .first_position = data<std::int32_t>(op.first_position),
          .sequences = op.first_position.dim(0),
          .page_positions = op.k_pages.dim(2),
          .heads = static_cast<int>(op.q.dim(1)),
          .groups = static_cast<int>(op.k_pages.dim(1)),
          .scale = op.scale};
}

// Finds the block's queries and their segment, in a grid of pieces_max(T, segments, queries that
// `rows` rows hold) blocks. False: there is no piece left for this block.
template <class Form>  // Packed, Gradients
__device__ __forceinline__ bool find_queries(const Form& op, int rows, Segment& segment,
                                             Block& block) {
  const Block shape = shape_of(op);
  const int queries = rows / shape.heads;
  const Piece piece = find_piece(op.segments, op.count, queries, blockIdx.x);
  if (piece.segment == op.count) return false;
  segment = op.segments[piece.segment];
  block = block_of(segment, piece.index * queries, queries, shape);
  return true;
}

// The sequence's queries as a segment, whose prefix are all positions before the first query.
template <class T>
__device__ __forceinline__ Segment queries_of(const Paged<T>& op, std::int64_t sequence) {
  return {.prefix_len = op.first_position[sequence],
          .begin = op.query_begin[sequence],
          .len = op.query_begin[sequence + 1] - op.query_begin[sequence]};
}

// The same for a paged batch. Sequence s has the blocks from begin[s] / queries + s on: as many as
// it has pieces, or one more, which then is no piece. So a block finds its sequence by bisection,
// without adding up the lengths of the sequences before.
template <class T>
__device__ __forceinline__ bool find_queries(const Paged<T>& op, int rows, std::int64_t& sequence,
                                             Block& block) {
  const Block shape = shape_of(op);
  if (op.which == Which::kOne) {
    sequence = blockIdx.x;
    const Segment own = queries_of(op, sequence);
    block = block_of(own, 0, 1, shape);
    return own.len == 1;
  }
  const int queries = rows / shape.heads;
  const auto first_block = [&](std::int64_t s) { return op.query_begin[s] / queries + s; };
  std::int64_t low = 0, high = op.sequences;
  while (high - low > 1) {
    const std::int64_t middle = (low + high) / 2;
    (first_block(middle) <= blockIdx.x ? low : high) = middle;
  }
  sequence = low;
  const Segment own = queries_of(op, sequence);
  const std::int64_t query = (blockIdx.x - first_block(low)) * queries;
  if (query >= own.len || (op.which == Which::kSeveral && own.len == 1)) return false;
  block = block_of(own, query, queries, shape);
  return true;
}

// An upper bound of the number of pieces of `per_piece` rows, where `sequences` sequences have
// `rows` rows together: each sequence has at most one piece that is not full.
inline unsigned pieces_max(std::int64_t rows, std::int64_t sequences, std::int64_t per_piece) {
  return static_cast<unsigned>(sequences == 0 ? 0 : rows / per_piece + sequences);
}

}  // namespace tandem::kernels::cuda
