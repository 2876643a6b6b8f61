// Rotary position embedding (Su et al., 2021) in the "rotate half" convention of HF's Qwen3 and
// Llama: channel i turns with channel i + D/2.
//
//   x'[i]       = x[i] * cos[p,i] - x[i + D/2] * sin[p,i]
//   x'[i + D/2] = x[i + D/2] * cos[p,i] + x[i] * sin[p,i]       i < D/2, p = position of the token
//   cos[p,i] = cos(p f[i]), in double, rounded to f32 once; sin likewise;  f[i] = theta^(-2i/D)
//
// RopeScaling slows low frequencies down ("llama3" in transformers' modeling_rope_utils.py). With
// the wavelength w = 2 pi / f and the context length N that the model was trained for before its
// context was extended, f becomes
//   w < N / high   f                             (more than `high` turns in N positions)
//   w > N / low    f / factor
//   between        (1 - s) f / factor + s f      s = (N / w - low) / (high - low)
//
// T tokens, H heads, D head channels (even), P positions in the table. x is f32 or bf16, the table
// is f32. Backward is the turn by -p: the same operator with Direction::kBackward.
#pragma once

#include <cstdint>
#include <optional>

#include "kernels/operand.h"

namespace tandem::kernels {

struct RopeScaling {
  double factor = 1;              // >= 1
  double low_freq_factor = 1;     // > 0
  double high_freq_factor = 4;    // > low_freq_factor
  double original_positions = 0;  // N > 0

  bool operator==(const RopeScaling&) const = default;
};

// The table of cos and sin for the positions 0 … P - 1, in host memory; filled once per model. For
// a GPU the caller copies it to the device.
struct RopeTable {
  TensorView cos;    // [P, D/2] written, dense
  TensorView sin;    // [P, D/2] written, dense
  double theta = 0;  // the checkpoint's rope_theta
  std::optional<RopeScaling> scaling = std::nullopt;
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
