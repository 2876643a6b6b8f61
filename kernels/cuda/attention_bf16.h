// Attention in bf16, on tensor cores. attention.cu has the operators and calls these for bf16
// operands; the arithmetic for f32 is in attention_tile.cuh.
//
// The rows of all operands must begin at multiples of 16 bytes (CHECKed), because they are copied
// to shared memory by 16 bytes. AT-1 and AT-2 (kernels/ops/attention.h) say the order of sums.
#pragma once

#include "kernels/backend.h"
#include "kernels/ops/attention.h"

namespace tandem::kernels::cuda {

// Defined in attention_bf16.cu.
void attention_packed_bf16(const Stream& stream, const AttentionPacked& op);
void attention_paged_bf16(const Stream& stream, const AttentionPaged& op);
// Defined in attention_bf16_backward.cu. The workspace must hold dout . out for each row and head
// [T, H], which attention.cu computes before it calls.
void attention_backward_bf16(const Stream& stream, const AttentionBackward& op);

}  // namespace tandem::kernels::cuda
