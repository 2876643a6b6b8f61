// Causal attention with grouped heads, in two forms that give the same bits:
//   packed   training: sequences lie one after another in [T, …]; forward and backward
//   paged    engine: keys and values lie in pages (kv_cache.h); prefill chunks and decode
//
//   s[p] = scale * sum_d q[d] * k[p,d]          p = 0 … position of the query
//   out  = sum_p softmax(s)[p] * v[p]           lse = log sum_p exp(s[p])
//
// T rows (tokens), H query heads, G key/value heads (H a multiple of G, at most kGroupHeadsMax to
// one; head h reads h / (H/G)), D head channels (a multiple of 16, at most kHeadChannelsMax). All
// share one dtype, f32 or bf16; lse, the workspace and all sums are f32. In bf16 on a GPU the rows
// of every operand must begin at multiples of 16 bytes.
//
// AT-1  Keys are reduced in chunks of positions counted from position 0 of the sequence, ascending,
//       with a running maximum (Milakov and Gimelshein, 2018; Dao et al., 2022). The result of a
//       row depends on its q and on the k and v of its positions 0 … p only: not on batch, paging,
//       prefix sharing, chunked prefill, threads or instruction set. Chunks have kChunkPositions.
//       On a CPU operands in bf16 are widened, the arithmetic is that of f32, and each element of
//       an output is rounded once. On a GPU a sequence is cut into splits of kSplitPositions
//       positions. The chunks of a split are summed starting from empty sums, and the sums of the
//       splits are joined, ascending.
//         f32   Within the first split a GPU has the CPU's bits.
//         bf16  Chunks have kMatrixChunkPositions, on tensor cores. Products are summed in f32 in
//               the hardware's order, which is the same for all rows on one kind of GPU. Weights
//               are rounded to bf16 before they are multiplied with v. k and v must be finite: the
//               weight 0 of a later position times an infinity would be NaN.
// AT-2  Gradients of a shared prefix are summed in the order of the segments, queries ascending; in
//       bf16 on a GPU, 16 rows of the queries' heads at a time.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/operand.h"

namespace tandem::kernels {

inline constexpr std::int64_t kChunkPositions = 16;
inline constexpr std::int64_t kMatrixChunkPositions = 64;  // in bf16 on a GPU
inline constexpr std::int64_t kSplitPositions = 256;       // on a GPU
inline constexpr std::int64_t kHeadChannelsMax = 256;
inline constexpr std::int64_t kGroupHeadsMax = 32;

// One sequence of a packed batch. Its own rows are `len` rows of [T, …] from `begin` on, and have
// the positions from prefix_len on. Position p < prefix_len is the row prefix_begin + p, which
// belongs to the segment that computes the prefix, such as a prompt that several completions share.
//
// Each of the T rows is an own row of exactly one segment. The segment that computes a prefix has
// no prefix itself, begins at prefix_begin and has at least prefix_len rows. The segments that use
// its rows follow it, with no other segment between them.
struct Segment {
  std::int32_t prefix_begin = 0;
  std::int32_t prefix_len = 0;  // 0: no prefix
  std::int32_t begin = 0;
  std::int32_t len = 0;  // at least 1
};

// Training, forward.
struct AttentionPacked {
  TensorView q;                       // [T, H, D]
  TensorView k;                       // [T, G, D]
  TensorView v;                       // [T, G, D]
  std::span<const Segment> segments;  // in the device's memory
  float scale = 0;                    // usually 1 / sqrt(D)
  TensorView out;                     // [T, H, D] written
  TensorView lse;                     // [T, H] dense, written for backward; empty when not needed
};

// Training, backward: the gradients of a forward call with the same q, k, v, segments and scale.
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

// Elements of the workspace, from the views of q [T, H, D] and k [T, G, D], whose memory is not
// read. A GPU needs one number for each row and head. A CPU needs room for the f32 sums of dq, dk
// and dv in bf16, and nothing in f32.
std::int64_t attention_backward_workspace(device::DeviceKind device, const TensorView& q,
                                          const TensorView& k);

// Says that the first `positions` positions of a sequence lie on the same pages as those of its
// neighbours. Sequences that share are adjacent in the batch, and all of them name the first one as
// leader and the same number of positions. No position of a new query is among them.
struct SharedPrefix {
  std::int32_t leader = 0;     // index of a sequence
  std::int32_t positions = 0;  // 0: the sequence shares nothing
};

// The engine: new queries against the pages of their sequences, which hold the keys and values of
// the new tokens already. S sequences; sequence s has query_begin[s + 1] - query_begin[s] queries.
struct AttentionPaged {
  TensorView q;               // [T, H, D] the new queries, sequence by sequence
  TensorView k_pages;         // [pages, G, page positions, D], layout of kv_cache.h
  TensorView v_pages;         // [pages, G, page positions, D]
  TensorView block_tables;    // [S, blocks_max] i32: page of each page-sized block of positions
  TensorView query_begin;     // [S + 1] i32: rows of sequence s are begin[s] … begin[s + 1] - 1
  TensorView first_position;  // [S] i32: position of the first query; the others follow
  float scale = 0;
  TensorView out;  // [T, H, D] written
  // Both may be empty. They save time on a GPU in bf16, for sequences of one query, and do not
  // change the result. In a batch of such sequences only, splits that lie in a shared prefix are
  // summed once for all sequences that share them. Where sequences are few, the splits of each are
  // spread over the GPU, as many as the workspace has room for.
  std::span<const SharedPrefix> shared_prefixes;  // [S] in the device's memory
  TensorView workspace;  // [attention_paged_workspace(S, H, D, splits)] f32
};

// Elements of a workspace with room for the sums of `splits` splits of each sequence. The sums of a
// split are the weighted values of a head's channels, the maximum and the sum of the weights.
constexpr std::int64_t attention_paged_workspace(std::int64_t sequences, std::int64_t heads,
                                                 std::int64_t channels, std::int64_t splits) {
  return sequences * heads * splits * (channels + 2);
}

void attention(const Stream& stream, const AttentionPacked& op);
void attention(const Stream& stream, const AttentionBackward& op);
void attention(const Stream& stream, const AttentionPaged& op);

}  // namespace tandem::kernels
