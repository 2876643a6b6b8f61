// Rotary position embedding (Su et al., 2021) in the "rotate half" convention of HF's Qwen3 and
// Llama: channel i turns with channel i + D/2.
//
//   x'[i]       = x[i] * cos[p,i] - x[i + D/2] * sin[p,i]
//   x'[i + D/2] = x[i + D/2] * cos[p,i] + x[i] * sin[p,i]       i < D/2, p = position of the token
//   cos[p,i] = cos(p * theta^(-2i/D)), in double, rounded to f32 once; sin likewise
//
// T tokens, H heads, D head channels (even), P positions in the table. f32; on a GPU x may be bf16.
// Backward is the turn by -p: the same operator with Direction::kBackward.
#pragma once

#include <cstdint>

#include "kernels/operand.h"

namespace tandem::kernels {

// Fills cos and sin for the positions 0 … P - 1. Host memory; done once per model.
struct RopeTable {
  TensorView cos;    // [P, D/2] written, dense
  TensorView sin;    // [P, D/2] written, dense
  double theta = 0;  // the checkpoint's rope_theta
};

enum class Direction : std::uint8_t { kForward, kBackward };

struct Rope {
  TensorView x;          // [T, H, D] turned in place (in backward: the gradient)
  TensorView positions;  // [T] i32, each in [0, P)
  TensorView cos;        // [P, D/2]
  TensorView sin;        // [P, D/2]
  Direction direction = Direction::kForward;
};

void fill_rope_table(const RopeTable& op);
void rope(const Stream& stream, const Rope& op);

}  // namespace tandem::kernels
