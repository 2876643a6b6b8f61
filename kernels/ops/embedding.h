// Rows of an embedding table, forward and backward.
//
//   y[t,:] = table[id(t),:]             dtable[ids[t],:] += dy[t,:], t ascending
//   id(t) = ids[t], or of an ids[t] below 0: drawn[~ids[t]]
//
// T tokens, V vocabulary, C channels. table and y share a dtype, f32 or bf16; dy is f32 or bf16,
// dtable f32. Every id is i32 in [0, V), which the caller has checked; a token that the host does
// not know yet is named by its place among those that are being drawn.
//
// On a CPU forward also reads a table that is packed as a weight, so that a table which is the head
// too (tied) lies in memory once. The values of a row lie kPanelColumns apart there, each, or each
// pair in bf16, in a cache line of its own. The bits are the same.
#pragma once

#include "kernels/operand.h"
#include "kernels/ops/matmul.h"

namespace tandem::kernels {

struct Embedding {
  TensorView ids;            // [T]    i32
  TensorView table;          // [V, C]; missing: the table is `packed`
  TensorView y;              // [T, C] written
  TensorView drawn;          // [R]    i32; may be missing where no id is below 0
  PackedWeight packed = {};  // [V, C], on a CPU
};

struct EmbeddingBackward {
  TensorView ids;     // [T]    i32
  TensorView dy;      // [T, C]
  TensorView dtable;  // [V, C] accumulated (+=)
};

void embedding(const Stream& stream, const Embedding& op);
void embedding(const Stream& stream, const EmbeddingBackward& op);

}  // namespace tandem::kernels
