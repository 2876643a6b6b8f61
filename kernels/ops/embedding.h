// Rows of an embedding table, forward and backward.
//
//   y[t,:] = table[id(t),:]             dtable[ids[t],:] += dy[t,:], t ascending
//   id(t) = ids[t] if ids[t] >= 0, else drawn[~ids[t]]
//
// T tokens, V vocabulary, C channels. table and y share a dtype, f32 or bf16; dy is f32 or bf16,
// dtable f32. Every id is i32 in [0, V), which the caller has checked. A negative ids[t] stands for
// a token that the host does not know yet: ~ids[t] is its index among the tokens that an earlier
// operator of the stream draws.
//
// On a CPU forward also reads a table that is packed as a weight, so that a table that is the
// output head too (tied weights) is in memory once. In a panel the values of a row (in bf16: pairs
// of them) are kPanelColumns apart, each in another cache line. The bits are the same.
#pragma once

#include "kernels/operand.h"
#include "kernels/ops/matmul.h"

namespace tandem::kernels {

struct Embedding {
  TensorView ids;            // [T]    i32
  TensorView table;          // [V, C]; empty: the table is `packed`
  TensorView y;              // [T, C] written
  TensorView drawn;          // [R]    i32; may be empty where no id is below 0
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
