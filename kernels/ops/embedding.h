// Rows of an embedding table, forward and backward.
//
//   y[t,:] = table[id(t),:]             dtable[ids[t],:] += dy[t,:], t ascending
//   id(t) = ids[t], or of an ids[t] below 0: drawn[~ids[t]]
//
// T tokens, V vocabulary, C channels. table and y share a dtype, f32 or bf16; dy is f32 or bf16,
// dtable f32. Every id is i32 in [0, V), which the caller has checked; a token that the host does
// not know yet is named by its place among those that are being drawn.
#pragma once

#include "kernels/operand.h"

namespace tandem::kernels {

struct Embedding {
  TensorView ids;    // [T]    i32
  TensorView table;  // [V, C]
  TensorView y;      // [T, C] written
  TensorView drawn;  // [R]    i32; may be missing where no id is below 0
};

struct EmbeddingBackward {
  TensorView ids;     // [T]    i32
  TensorView dy;      // [T, C]
  TensorView dtable;  // [V, C] accumulated (+=)
};

void embedding(const Stream& stream, const Embedding& op);
void embedding(const Stream& stream, const EmbeddingBackward& op);

}  // namespace tandem::kernels
