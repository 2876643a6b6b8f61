// Draws one token per row of logits and reports its log-probability.
//
// Order of the truncations (vLLM's): temperature; banned tokens leave; min_p keeps tokens with
// p >= min_p * max p; top_k keeps the k most probable; top_p keeps, of what is left and
// renormalised, the smallest set of most probable tokens whose mass reaches top_p. Among equals the
// lower token id is the more probable one. Then one token is drawn by inversion, ids ascending,
// with u = philox(seed, position): a draw depends on its row's logits, seed and position alone.
//
// temperature 0 is greedy: the most probable token that is not banned, lowest id among equals.
// The reported log-probability is that of softmax(logits / temperature), without any truncation or
// ban, with log_prob.h's bits (LP-1); for a greedy row that of softmax(logits).
//
// R rows, V vocabulary (up to kVocabularyMax). f32. A NaN logit is never drawn.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/operand.h"

namespace tandem::kernels {

inline constexpr std::int64_t kVocabularyMax = std::int64_t{1} << 24;

struct RowSampling {
  std::uint64_t seed = 0;                // the trajectory's
  std::uint64_t position = 0;            // of the token to be drawn
  float temperature = 1;                 // >= 0
  float top_p = 1;                       // (0, 1]; 1: off
  float min_p = 0;                       // [0, 1); 0: off
  std::int32_t top_k = 0;                // 0: off
  std::span<const std::int32_t> banned;  // token ids; fewer than V (eos while min_tokens lasts)
};

struct Sample {
  TensorView logits;                  // [R, V]
  std::span<const RowSampling> rows;  // R of them
  TensorView tokens;                  // [R] i32 written
  TensorView log_prob;                // [R] written
};

void sample(const Stream& stream, const Sample& op);

}  // namespace tandem::kernels
