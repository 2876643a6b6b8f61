// Log-probability of one target per row and entropy of the row, from logits; and their gradient.
//
//   z = logits / temperature      p = softmax(z)      lse = log sum_i exp(z_i)
//   log_prob = z_target - lse     entropy = -sum_i p_i log p_i
//   dlogits_i = 1 / temperature *
//               (dlog_prob * ([i = target] - p_i) - dentropy * p_i * (log p_i + entropy))
//
// R rows (the selected tokens), V vocabulary. logits are f32 or bf16. dlogits have the dtype of the
// logits, or are bf16 beside f32 logits; all else is f32. targets are i32 in [0, V). Instead of
// dividing by the temperature, operators multiply by 1 / temperature, rounded to f32 once.
//
// LP-1  log_prob has the bits that sample.h reports for the same logits, temperature and token.
//       Both reduce a row in one fixed tree: on a CPU over 16 lanes, i ascending, and then by
//       halves (cpu/soft_max.h); on a GPU as cuda/soft_max.cuh does.
#pragma once

#include "kernels/operand.h"

namespace tandem::kernels {

struct LogProb {
  TensorView logits;      // [R, V]
  TensorView targets;     // [R] i32
  float temperature = 1;  // > 0
  TensorView log_prob;    // [R] written
  TensorView entropy;     // [R] written, or empty (then it costs nothing)
  TensorView lse;         // [R] written for backward, or empty
};

// The gradient, of a forward call with the same logits, targets and temperature.
struct LogProbBackward {
  TensorView logits;   // [R, V]
  TensorView targets;  // [R] i32
  float temperature = 1;
  TensorView lse;        // [R] as forward wrote it
  TensorView entropy;    // [R] as forward wrote it; empty if and only if dentropy is
  TensorView dlog_prob;  // [R]
  TensorView dentropy;   // [R], or empty for zeros
  TensorView dlogits;    // [R, V] written; may be logits itself if of one dtype
};

void log_prob(const Stream& stream, const LogProb& op);
void log_prob(const Stream& stream, const LogProbBackward& op);

}  // namespace tandem::kernels
