#include "kernels/ops/rope.h"

#include <cmath>
#include <numbers>

#include "kernels/backend.h"

namespace tandem::kernels {

namespace {

// The "llama3" rule of rope.h, in turns within N positions instead of wavelengths.
double scaled(double frequency, const RopeScaling& by) {
  const double turns = by.original_positions * frequency / (2 * std::numbers::pi);  // N / w
  if (turns > by.high_freq_factor) return frequency;
  const double slow = frequency / by.factor;
  if (turns < by.low_freq_factor) return slow;
  const double smooth = (turns - by.low_freq_factor) / (by.high_freq_factor - by.low_freq_factor);
  return (1 - smooth) * slow + smooth * frequency;
}

}  // namespace

void fill_rope_table(const RopeTable& op) {
  const std::int64_t positions = op.cos.dim(0), half = op.cos.dim(1);
  CHECK(is_f32(op.cos, {positions, half}) && op.cos.dense());
  CHECK(is_f32(op.sin, {positions, half}) && op.sin.dense());
  CHECK(op.theta > 0);
  if (op.scaling)
    CHECK(op.scaling->factor >= 1 && op.scaling->original_positions > 0 &&
          op.scaling->low_freq_factor > 0 &&
          op.scaling->high_freq_factor > op.scaling->low_freq_factor);
  float* cosines = op.cos.f32();
  float* sines = op.sin.f32();
  // The table is filled by one thread on the host, once per model: a GPU then has the same table.
  for (std::int64_t i = 0; i < half; ++i) {
    double frequency = std::pow(op.theta, -static_cast<double>(i) / static_cast<double>(half));
    if (op.scaling) frequency = scaled(frequency, *op.scaling);
    for (std::int64_t p = 0; p < positions; ++p) {
      // The angle is a double: an f32 angle of thousands of radians has few bits left for its
      // fraction.
      const double angle = static_cast<double>(p) * frequency;
      cosines[p * half + i] = static_cast<float>(std::cos(angle));
      sines[p * half + i] = static_cast<float>(std::sin(angle));
    }
  }
}

void rope(const Stream& stream, const Rope& op) {
  const std::int64_t tokens = op.x.dim(0), channels = op.x.dim(2);
  CHECK(channels % 2 == 0);
  CHECK(computes(op.x.dtype) && is(op.x.dtype, op.x, {tokens, op.x.dim(1), channels}));
  CHECK(is_i32(op.positions, {tokens}));
  CHECK(is_f32(op.cos, {op.cos.dim(0), channels / 2}) && op.cos.dense());
  CHECK(is_f32(op.sin, {op.cos.dim(0), channels / 2}) && op.sin.dense());
  backend(stream.device).rope(stream, op);
}

}  // namespace tandem::kernels
