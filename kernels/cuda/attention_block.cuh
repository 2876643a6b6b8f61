// How attention's rows are dealt to blocks, for every dtype and form. Row r of a block is query
// r / heads, head r % heads of the heads that share one key/value head.
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
  std::int64_t row = 0;             // of query 0 in [T, …]
  std::int64_t first_position = 0;  // of query 0
  int queries = 0;
  int heads = 0;          // that share the key/value head
  int channels = 0;       // D
  std::int64_t head = 0;  // the first of the heads
  float scale = 0;

  __device__ __forceinline__ int rows() const { return queries * heads; }
  __device__ __forceinline__ std::int64_t positions() const { return first_position + queries; }
  // Row r sees the positions before this one; rows past the last see none.
  __device__ __forceinline__ std::int64_t seen(int r) const {
    return r < rows() ? first_position + r / heads + 1 : 0;
  }
  // How many of the `most` positions from `begin` on row r sees.
  __device__ __forceinline__ int visible(int r, std::int64_t begin, int most) const {
    const std::int64_t count = seen(r) - begin;
    return count < 0 ? 0 : count > most ? most : static_cast<int>(count);
  }
};

// The heads that the block has, which share the key/value head blockIdx.y, and no queries yet.
template <class Form>
__device__ __forceinline__ Block shape_of(const Form& op) {
  const int heads = op.heads / op.groups;
  return {.heads = heads,
          .channels = static_cast<int>(op.q.channels),
          .head = std::int64_t{blockIdx.y} * heads,
          .scale = op.scale};
}

// The segment's own queries from `query` on, at most `most`; the rest of it is as in `shape`.
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

__device__ __forceinline__ std::int64_t row_of(const Segment& segment, std::int64_t position) {
  return position < segment.prefix_len ? segment.prefix_begin + position
                                       : segment.begin + position - segment.prefix_len;
}

inline constexpr std::int64_t kNoRow = -1;

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

// What the kernels of a form are given.
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

// Sequences that a kernel is for.
enum class Which : unsigned char {
  kAll,
  kOne,      // of one query; sequence s has the grid's blocks x = s
  kSeveral,  // of more
};

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

// The block's queries, and whose they are, where the grid has pieces_max(T, count, queries that
// `rows` rows hold) pieces. False: the block is no piece.
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

// The sequence's queries; prefix_len positions come before them.
template <class T>
__device__ __forceinline__ Segment queries_of(const Paged<T>& op, std::int64_t sequence) {
  return {.prefix_len = op.first_position[sequence],
          .begin = op.query_begin[sequence],
          .len = op.query_begin[sequence + 1] - op.query_begin[sequence]};
}

// Sequence s has the blocks begin[s] / queries + s …: room for its pieces whatever its length, and
// never another's. The last of it may be no piece.
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

// At least as many as there are pieces of `per_piece` rows in sequences of T rows in all.
inline unsigned pieces_max(std::int64_t rows, std::int64_t sequences, std::int64_t per_piece) {
  return static_cast<unsigned>(sequences == 0 ? 0 : rows / per_piece + sequences);
}

}  // namespace tandem::kernels::cuda
