#include "kernels/ops/swiglu.h"

#include "kernels/backend.h"

namespace tandem::kernels {

void swiglu(const Stream& stream, const Swiglu& op) {
  const std::int64_t tokens = op.y.dim(0), channels = op.y.dim(1);
  CHECK(is_f32(op.x, {tokens, 2 * channels}));
  CHECK(is_f32(op.y, {tokens, channels}));
  backend(stream.device).swiglu(stream, op);
}

void swiglu(const Stream& stream, const SwigluBackward& op) {
  const std::int64_t tokens = op.dy.dim(0), channels = op.dy.dim(1);
  CHECK(is_f32(op.dy, {tokens, channels}));
  CHECK(is_f32(op.x, {tokens, 2 * channels}));
  CHECK(is_f32(op.dx, {tokens, 2 * channels}));
  backend(stream.device).swiglu_backward(stream, op);
}

}  // namespace tandem::kernels
