// The operands of attention's backward pass as kernels take them, for every dtype. The means of
// dout . out are in the operator's workspace: attention.cu computes them first, since both passes
// (attention_backward.cuh, attention_bf16_backward.cu) need them for every chunk.
#pragma once

#include "kernels/cuda/attention_block.cuh"
#include "kernels/ops/attention.h"

namespace tandem::kernels::cuda {

template <class T>
struct Gradients {
  Heads<T> dout, q, k, v, dq, dk, dv;
  const Segment* segments;  // in device memory
  std::int64_t count;       // the number of segments
  const float* lse;         // [T, H]
  const float* means;       // [T, H], of dout . out
  int heads, groups;
  float scale;
};

template <class T>
Gradients<T> gradients_of(const AttentionBackward& op) {
  return {.dout = heads_of<T>(op.dout),
          .q = heads_of<T>(op.q),
          .k = heads_of<T>(op.k),
          .v = heads_of<T>(op.v),
          .dq = heads_of<T>(op.dq),
          .dk = heads_of<T>(op.dk),
          .dv = heads_of<T>(op.dv),
          .segments = op.segments.data(),
          .count = std::ssize(op.segments),
          .lse = data<float>(op.lse),
          .means = data<float>(op.workspace),
          .heads = static_cast<int>(op.q.dim(1)),
          .groups = static_cast<int>(op.k.dim(1)),
          .scale = op.scale};
}

}  // namespace tandem::kernels::cuda
