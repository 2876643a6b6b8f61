// One pass from the product q|k|v of new tokens to the operands of paged attention: q and k are
// normalised head by head (in models that do so) and turned by position. q is updated in place;
// keys and values are written to their slots.
//
//   q       = rope(rms_norm(q, q_norm))         rms_norm.h over the D channels, rope.h forward
//   k_pages = rope(rms_norm(k, k_norm))         kv_cache.h, at the slots
//   v_pages = v
// Without norm weights q and k are turned without being normalised.
//
// T tokens, A query heads, G key/value heads, D head channels (a multiple of 16, at most
// kHeadChannelsMax), P positions in the table. q, k, v, the weights and the pages share one dtype,
// f32 or bf16; on a GPU their rows begin at multiples of 16 bytes.
//
// AI-1  q and the slots get, bit for bit, the results of rms_norm, rope and kv_write one after
//       another: in bf16 the normalised row is rounded before it is turned. A learner calls the
//       three operators one by one, because it keeps the intermediate results for its backward
//       pass, and must get the engine's numbers (NE-2).
#pragma once

#include "kernels/operand.h"

namespace tandem::kernels {

struct AttentionInput {
  TensorView q;          // [T, A, D] updated in place
  TensorView k;          // [T, G, D] undefined afterwards: a device may overwrite it
  TensorView v;          // [T, G, D]
  TensorView q_norm;     // [D] weight; q_norm and k_norm may both be empty
  TensorView k_norm;     // [D] weight
  float eps = 0;         // of the norms, from the checkpoint's config: there is no good default
  TensorView positions;  // [T] i32, each in [0, P)
  TensorView cos;        // [P, D/2] f32, as rope.h says
  TensorView sin;        // [P, D/2] f32
  TensorView slots;      // [T] i32, distinct; or -1: a row of padding, which is written nowhere
  TensorView k_pages;    // [pages, G, page positions, D] the slots are written
  TensorView v_pages;    // [pages, G, page positions, D] the slots are written
};

void attention_input(const Stream& stream, const AttentionInput& op);

}  // namespace tandem::kernels
