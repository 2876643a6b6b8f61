// The CPU's arithmetic, one function per row of Backend, in the namespace of the instruction set
// that the including source is compiled for. kernels/ops/<op>.h has the contract of each function,
// and kernels/ops/<op>.cc has checked the operands before it calls.
//
// The work is done when a function returns. Functions share their work among the threads of the
// stream's pool, cut by data and not by the number of threads (PA-1), so that results repeat; only
// products choose their cut by the number of threads, which does not change their bits (MM-1).
#pragma once

#include "kernels/backend.h"

namespace tandem::kernels::TANDEM_CPU_ISA {

void adamw(const Stream& stream, const AdamW& op);
void attention_input(const Stream& stream, const AttentionInput& op);
void attention_packed(const Stream& stream, const AttentionPacked& op);
void attention_backward(const Stream& stream, const AttentionBackward& op);
void attention_paged(const Stream& stream, const AttentionPaged& op);
void add(const Stream& stream, const Add& op);
void scale(const Stream& stream, const Scale& op);
void convert(const Stream& stream, const Convert& op);
void embedding(const Stream& stream, const Embedding& op);
void embedding_backward(const Stream& stream, const EmbeddingBackward& op);
void sum_of_squares(const Stream& stream, const SumOfSquares& op);
void sum_pieces(const Stream& stream, const SumPieces& op);
void kv_write(const Stream& stream, const KvWrite& op);
void kv_copy(const Stream& stream, const KvCopy& op);
void log_prob(const Stream& stream, const LogProb& op);
void log_prob_backward(const Stream& stream, const LogProbBackward& op);
void pack_weight(const Stream& stream, const PackWeight& op);
void matmul(const Stream& stream, const Matmul& op);
void matmul_plain(const Stream& stream, const MatmulPlain& op);
void matmul_backward_input(const Stream& stream, const MatmulBackwardInput& op);
void matmul_backward_weight(const Stream& stream, const MatmulBackwardWeight& op);
void policy_loss(const Stream& stream, const PolicyLoss& op);
void importance_weights(const Stream& stream, const ImportanceWeights& op);
void rms_norm(const Stream& stream, const RmsNorm& op);
void rms_norm_backward(const Stream& stream, const RmsNormBackward& op);
void rope(const Stream& stream, const Rope& op);
void sample(const Stream& stream, const Sample& op);
void swiglu(const Stream& stream, const Swiglu& op);
void swiglu_backward(const Stream& stream, const SwigluBackward& op);

// The functions above as a table, which backend.cc hands out.
const Backend& table();

}  // namespace tandem::kernels::TANDEM_CPU_ISA
