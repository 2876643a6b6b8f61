// Draws one token per row of logits and reports its log-probability.
//
// The steps, in vLLM's order:
//   1. logits are divided by the temperature
//   2. banned tokens are removed
//   3. min_p keeps the tokens with p >= min_p * max p
//   4. top_k keeps the k most probable tokens
//   5. top_p renormalises the remaining tokens and keeps the smallest set of most probable ones
//      whose mass reaches top_p
//   6. one token is drawn by inversion, ids ascending, with u = philox(seed, position)
// Among tokens of equal probability the lower id counts as the more probable one. A draw depends on
// the logits of its row and on its own rules, seed and position alone.
//
// temperature 0 is greedy: the most probable token that is not banned, lowest id among equals.
// The reported log-probability is that of softmax(logits / temperature), without any truncation or
// ban, with log_prob.h's bits (LP-1); for a greedy row that of softmax(logits).
//
// R draws from L rows of logits, V vocabulary (up to kVocabularyMax). Several draws may read one
// row: all completions of a prompt draw their first token from the prompt's last row. logits are
// f32 or bf16. A token whose logit is NaN is not drawn while another can be.
//
// SA-1  The token is the same on every device. A token's mass is exp(z - max z), cut to a multiple
//       of 1 / kUnitMass and held as an integer, so that sums are exact in whatever order.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/operand.h"

namespace tandem::kernels {

inline constexpr std::int64_t kVocabularyMax = std::int64_t{1} << 24;

// The mass of the most probable token that is not banned: a row's masses add up to 2^62 at most.
inline constexpr float kUnitMass = 0x1p38f;

// The mass that top_p keeps at least, of `total` in the draw. Never 0: one token always remains.
[[gnu::always_inline]] constexpr std::uint64_t mass_to_keep(std::uint64_t total, float top_p) {
  const double share = static_cast<double>(total) * static_cast<double>(top_p);
  return share < 1 ? 1 : static_cast<std::uint64_t>(share);
}

// total * random / 2^24, rounded down, without leaving 64 bits. The drawn token is the first one at
// which the running sum of masses, ids ascending, exceeds the result. `random` is below 2^24.
[[gnu::always_inline]] constexpr std::uint64_t drawn_mass(std::uint64_t total,
                                                          std::uint32_t random) {
  return (total >> 24) * random + (((total & 0xffffffu) * random) >> 24);
}

inline constexpr std::int32_t kOwnRow = -1;  // draw r reads row r of the logits

// The rules of one draw.
struct RowSampling {
  std::uint64_t seed = 0;                // the trajectory's seed
  std::uint64_t position = 0;            // the position of the token to be drawn
  float temperature = 1;                 // >= 0
  float top_p = 1;                       // (0, 1]; 1: off
  float min_p = 0;                       // [0, 1); 0: off
  std::int32_t top_k = 0;                // 0: off
  std::int32_t logits_row = kOwnRow;     // row of the logits to draw from
  std::span<const std::int32_t> banned;  // token ids; fewer than V (eos while min_tokens lasts)
};

struct Sample {
  TensorView logits;                  // [L, V]
  std::span<const RowSampling> rows;  // [R]; they and their `banned` lists are in device memory
  TensorView tokens;                  // [R] i32 written
  TensorView log_prob;                // [R] written
};

void sample(const Stream& stream, const Sample& op);

}  // namespace tandem::kernels
