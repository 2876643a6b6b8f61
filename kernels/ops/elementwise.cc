#include "kernels/ops/elementwise.h"

#include "kernels/backend.h"

namespace tandem::kernels {

namespace {

bool is_f32_or_bf16(const TensorView& view, std::int64_t elements) {
  return is_f32(view, {elements}) || is(device::DType::kBF16, view, {elements});
}

}  // namespace

void add(const Stream& stream, const Add& op) {
  const std::int64_t elements = op.y.dim(0);
  CHECK(computes(op.y.dtype));
  CHECK(is(op.y.dtype, op.x, {elements}) && is(op.y.dtype, op.y, {elements}));
  backend(stream.device).add(stream, op);
}

void scale(const Stream& stream, const Scale& op) {
  CHECK(computes(op.y.dtype) && is(op.y.dtype, op.y, {op.y.dim(0)}));
  backend(stream.device).scale(stream, op);
}

void convert(const Stream& stream, const Convert& op) {
  const std::int64_t elements = op.y.dim(0);
  CHECK(is_f32_or_bf16(op.x, elements) && is_f32_or_bf16(op.y, elements));
  // Threads convert ranges in any order: of two dtypes in one memory, a write to one element would
  // change another that is still to be read.
  CHECK(op.y.empty() || op.y.data != op.x.data);
  backend(stream.device).convert(stream, op);
}

}  // namespace tandem::kernels
