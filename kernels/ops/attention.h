// Causal attention with grouped heads, in two forms that give the same bits:
//   packed   training: sequences lie one after another in [T, …]; forward and backward
//   paged    engine: keys and values lie in pages (kv_cache.h); prefill chunks and decode
//
//   s[p] = scale * sum_d q[d] * k[p,d]          p = 0 … position of the query
//   out  = sum_p softmax(s)[p] * v[p]           lse = log sum_p exp(s[p])
//
// T rows (tokens), H query heads, G key/value heads (H a multiple of G, at most kGroupHeadsMax to
// one; head h reads h / (H/G)), D head channels (a multiple of 16, at most kHeadChannelsMax). All
// share one dtype, f32 or bf16; lse, the workspace and all sums are f32. In bf16 on a GPU every
// operand's rows begin at multiples of 16 bytes.
//
// AT-1  Keys are reduced in chunks of positions counted from position 0 of the sequence, ascending,
//       with a running maximum (Milakov and Gimelshein, 2018; Dao et al., 2022). The result of a
//       row depends on its q and on the k and v of its positions 0 … p only: not on batch, paging,
//       prefix sharing, chunked prefill, threads or instruction set. Chunks have kChunkPositions.
//       On a CPU operands in bf16 are widened, the arithmetic is that of f32, and each element of
//       an output is rounded once. On a GPU the chunks of each kSplitPositions positions are summed
//       from nothing, and these splits then joined, ascending.
//         f32   Within the first split a GPU has the CPU's bits.
//         bf16  Chunks of kMatrixChunkPositions, on tensor cores: products are summed in f32 in the
//               hardware's order, which is one for all rows of a kind of GPU, and the weights,
//               before they meet v, rounded to bf16. k and v must be finite: a later position's
//               weight of 0 does not silence an infinity.
// AT-2  Gradients of a shared prefix are summed in the order of the segments, queries ascending; in
//       bf16 on a GPU, 16 rows of the queries' heads at a time.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/operand.h"

namespace tandem::kernels {

inline constexpr std::int64_t kChunkPositions = 16;
inline constexpr std::int64_t kMatrixChunkPositions = 64;  // of bf16 on a GPU
inline constexpr std::int64_t kSplitPositions = 256;       // on a GPU
inline constexpr std::int64_t kHeadChannelsMax = 256;
inline constexpr std::int64_t kGroupHeadsMax = 32;

// One sequence of a packed batch: `len` own rows from `begin` on, at the positions prefix_len … ;
// position p < prefix_len is the row prefix_begin + p of the segment that holds the prefix.
// Every row is own row of exactly one segment. A segment with a prefix comes after the segment
// (without prefix, `begin` = prefix_begin, at least prefix_len rows) that computes it, with only
// other users of that prefix between them.
struct Segment {
  std::int32_t prefix_begin = 0;
  std::int32_t prefix_len = 0;  // 0: no prefix
  std::int32_t begin = 0;
  std::int32_t len = 0;  // at least 1
};

struct AttentionPacked {
  TensorView q;                       // [T, H, D]
  TensorView k;                       // [T, G, D]
  TensorView v;                       // [T, G, D]
  std::span<const Segment> segments;  // in the device's memory
  float scale = 0;                    // usually 1 / sqrt(D)
  TensorView out;                     // [T, H, D] written
  TensorView lse;                     // [T, H] dense, written for backward; empty when not needed
};

struct AttentionBackward {
  TensorView dout;  // [T, H, D]
  TensorView q;     // [T, H, D]
  TensorView k;     // [T, G, D]
  TensorView v;     // [T, G, D]
  TensorView out;   // [T, H, D] as forward wrote it
  TensorView lse;   // [T, H]    as forward wrote it
  std::span<const Segment> segments;
  float scale = 0;
  TensorView dq;         // [T, H, D] written
  TensorView dk;         // [T, G, D] written
  TensorView dv;         // [T, G, D] written
  TensorView workspace;  // [attention_backward_workspace(device, q, k)] f32
};

// From the views of q [T, H, D] and k [T, G, D], whose memory is not read. A GPU needs a number for
// each row and head. On a CPU bf16 needs room for the sums of dq, dk and dv, and f32 needs none.
std::int64_t attention_backward_workspace(runtime::DeviceKind device, const TensorView& q,
                                          const TensorView& k);

// Neighbouring sequences whose tables begin with the same pages, for at least `positions`
// positions, none of which is a new query's: all of them have the first of them as leader, and the
// same positions. 0 positions: shares with none.
struct SharedPrefix {
  std::int32_t leader = 0;
  std::int32_t positions = 0;
};

struct AttentionPaged {
  TensorView q;             // [T, H, D] the new queries, sequence by sequence
  TensorView k_pages;       // [pages, G, page positions, D], layout of kv_cache.h
  TensorView v_pages;       // [pages, G, page positions, D]
  TensorView block_tables;  // [S, blocks_max] i32: page of each page-sized block of positions
  TensorView
      query_begin;  // [S + 1] i32: queries of sequence s are the rows begin[s] … begin[s+1]-1
  TensorView first_position;  // [S] i32: position of the first of them; the rest follow
  float scale = 0;
  TensorView out;  // [T, H, D] written
  // Both may be empty. They save time, in bf16 for sequences of one query, and do not touch the
  // result: where all are of one, splits that lie in a shared prefix are summed up for all sharers
  // at once; and where sequences are few, those of each are spread over the GPU, as many as there
  // is room for.
  std::span<const SharedPrefix> shared_prefixes;  // [S] in the device's memory
  TensorView workspace;  // [attention_paged_workspace(S, H, D, splits)] f32: so many splits
};

constexpr std::int64_t attention_paged_workspace(std::int64_t sequences, std::int64_t heads,
                                                 std::int64_t channels, std::int64_t splits) {
  return sequences * heads * splits * (channels + 2);
}

void attention(const Stream& stream, const AttentionPacked& op);
void attention(const Stream& stream, const AttentionBackward& op);
void attention(const Stream& stream, const AttentionPaged& op);

}  // namespace tandem::kernels
