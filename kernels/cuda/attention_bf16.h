// Attention in bf16, which attention.cu calls.
#pragma once

#include "kernels/backend.h"

namespace tandem::kernels::cuda {

void attention_packed_bf16(const Stream& stream, const AttentionPacked& op);
void attention_paged_bf16(const Stream& stream, const AttentionPaged& op);
// Needs the means of dout . out in the workspace.
void attention_backward_bf16(const Stream& stream, const AttentionBackward& op);

}  // namespace tandem::kernels::cuda
