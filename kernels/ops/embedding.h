// Rows of an embedding table, forward and backward.
//
//   y[t,:] = table[ids[t],:]            dtable[ids[t],:] += dy[t,:], t ascending
//
// T tokens, V vocabulary, C channels. table and y share a dtype, f32, or bf16 on a GPU, where dy
// may be bf16 too; dtable is f32. ids are i32 in [0, V), which the caller has checked.
#pragma once

#include "kernels/operand.h"

namespace tandem::kernels {

struct Embedding {
  TensorView ids;    // [T]    i32
  TensorView table;  // [V, C]
  TensorView y;      // [T, C] written
};

struct EmbeddingBackward {
  TensorView ids;     // [T]    i32
  TensorView dy;      // [T, C]
  TensorView dtable;  // [V, C] accumulated (+=)
};

void embedding(const Stream& stream, const Embedding& op);
void embedding(const Stream& stream, const EmbeddingBackward& op);

}  // namespace tandem::kernels
