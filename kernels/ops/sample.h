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
// R draws from L rows of logits, V vocabulary (up to kVocabularyMax). Several draws may read one
// row: a prompt's last one, for all that continue it. logits are f32 or bf16. A NaN logit is never
// drawn.
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

// What top_p keeps at least, of all that is in the draw.
[[gnu::always_inline]] constexpr std::uint64_t mass_to_keep(std::uint64_t total, float top_p) {
  const double share = static_cast<double>(total) * static_cast<double>(top_p);
  return share < 1 ? 1 : static_cast<std::uint64_t>(share);
}

// Where a random number in [0, 2^24) points: the first token at which the masses, ids ascending,
// add up to more is drawn.
[[gnu::always_inline]] constexpr std::uint64_t drawn_mass(std::uint64_t total,
                                                          std::uint32_t random) {
  return (total >> 24) * random + (((total & 0xffffffu) * random) >> 24);
}

inline constexpr std::int32_t kOwnRow = -1;  // of the r-th draw: row r

struct RowSampling {
  std::uint64_t seed = 0;                // the trajectory's
  std::uint64_t position = 0;            // of the token to be drawn
  float temperature = 1;                 // >= 0
  float top_p = 1;                       // (0, 1]; 1: off
  float min_p = 0;                       // [0, 1); 0: off
  std::int32_t top_k = 0;                // 0: off
  std::int32_t logits_row = kOwnRow;     // drawn from
  std::span<const std::int32_t> banned;  // token ids; fewer than V (eos while min_tokens lasts)
};

struct Sample {
  TensorView logits;                  // [L, V]
  std::span<const RowSampling> rows;  // R of them; they and what they name in the device's memory
  TensorView tokens;                  // [R] i32 written
  TensorView log_prob;                // [R] written
};

void sample(const Stream& stream, const Sample& op);

}  // namespace tandem::kernels
