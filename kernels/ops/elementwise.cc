#include "kernels/ops/elementwise.h"

#include "kernels/backend.h"

namespace tandem::kernels {

void add(const Stream& stream, const Add& op) {
  const std::int64_t elements = op.y.dim(0);
  CHECK(computes(stream, op.y.dtype));
  CHECK(is(op.y.dtype, op.x, {elements}) && is(op.y.dtype, op.y, {elements}));
  backend(stream.device).add(stream, op);
}

void scale(const Stream& stream, const Scale& op) {
  CHECK(computes(stream, op.y.dtype) && is(op.y.dtype, op.y, {op.y.dim(0)}));
  backend(stream.device).scale(stream, op);
}

}  // namespace tandem::kernels
