// The one list of operators: a row for each function that a device provides, with its operands. The
// table, the declarations of each device and the devices' tables are all made from this list, so a
// row without arithmetic does not link. The files of arithmetic are listed in operators.cmake.
//
// The headers in kernels/ops overload one name for an operator and its gradient, such as rms_norm;
// the list has a row for each, such as rms_norm and rms_norm_backward.
#pragma once

// clang-format off
// ROW(function, Operands)
#define TANDEM_OPERATORS(ROW) \
  ROW(adamw, AdamW) \
  ROW(attention_input, AttentionInput) \
  ROW(attention_packed, AttentionPacked) \
  ROW(attention_backward, AttentionBackward) \
  ROW(attention_paged, AttentionPaged) \
  ROW(add, Add) \
  ROW(scale, Scale) \
  ROW(convert, Convert) \
  ROW(embedding, Embedding) \
  ROW(embedding_backward, EmbeddingBackward) \
  ROW(sum_of_squares, SumOfSquares) \
  ROW(sum_pieces, SumPieces) \
  ROW(kv_write, KvWrite) \
  ROW(kv_copy, KvCopy) \
  ROW(log_prob, LogProb) \
  ROW(log_prob_backward, LogProbBackward) \
  ROW(pack_weight, PackWeight) \
  ROW(matmul, Matmul) \
  ROW(matmul_plain, MatmulPlain) \
  ROW(matmul_backward_input, MatmulBackwardInput) \
  ROW(matmul_backward_weight, MatmulBackwardWeight) \
  ROW(policy_loss, PolicyLoss) \
  ROW(importance_weights, ImportanceWeights) \
  ROW(rms_norm, RmsNorm) \
  ROW(rms_norm_backward, RmsNormBackward) \
  ROW(rope, Rope) \
  ROW(sample, Sample) \
  ROW(swiglu, Swiglu) \
  ROW(swiglu_backward, SwigluBackward)
// clang-format on
