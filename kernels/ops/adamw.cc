#include "kernels/ops/adamw.h"

#include "kernels/backend.h"

namespace tandem::kernels {

void adamw(const Stream& stream, const AdamW& op) {
  const std::int64_t elements = op.parameters.dim(0);
  CHECK(is_f32(op.parameters, {elements}) && is_f32(op.gradients, {elements}));
  CHECK(is_f32(op.m, {elements}) && is_f32(op.v, {elements}));
  CHECK(op.rounded.empty() || (computes(stream, runtime::DType::kBF16) &&
                               is(runtime::DType::kBF16, op.rounded, {elements})));
  CHECK(op.step >= 1);
  CHECK(op.beta1 >= 0 && op.beta1 < 1 && op.beta2 >= 0 && op.beta2 < 1);
  CHECK(op.eps > 0);
  backend(stream.device).adamw(stream, op);
}

}  // namespace tandem::kernels
