#include "kernels/ops/elementwise.h"

#include "kernels/backend.h"

namespace tandem::kernels {

void add(const Stream& stream, const Add& op) {
  const std::int64_t elements = op.y.dim(0);
  CHECK(is_f32(op.x, {elements}) && is_f32(op.y, {elements}));
  backend(stream.device).add(stream, op);
}

void scale(const Stream& stream, const Scale& op) {
  CHECK(is_f32(op.y, {op.y.dim(0)}));
  backend(stream.device).scale(stream, op);
}

}  // namespace tandem::kernels
