#include "kernels/ops/swiglu.h"

#include "kernels/backend.h"

namespace tandem::kernels {

void swiglu(const Stream& stream, const Swiglu& op) {
  const std::int64_t tokens = op.y.dim(0), channels = op.y.dim(1);
  CHECK(computes(op.y.dtype));
  CHECK(is(op.y.dtype, op.x, {tokens, 2 * channels}));
  CHECK(is(op.y.dtype, op.y, {tokens, channels}));
  backend(stream.device).swiglu(stream, op);
}

void swiglu(const Stream& stream, const SwigluBackward& op) {
  const std::int64_t tokens = op.dy.dim(0), channels = op.dy.dim(1);
  CHECK(computes(op.dy.dtype));
  CHECK(is(op.dy.dtype, op.dy, {tokens, channels}));
  CHECK(is(op.dy.dtype, op.x, {tokens, 2 * channels}));
  // dx may be x itself: a gate and its up are read before either of their gradients is written.
  CHECK(is(op.dy.dtype, op.dx, {tokens, 2 * channels}));
  backend(stream.device).swiglu_backward(stream, op);
}

}  // namespace tandem::kernels
