#include "kernels/ops/embedding.h"

#include "kernels/backend.h"

namespace tandem::kernels {

void embedding(const Stream& stream, const Embedding& op) {
  const bool packed = op.table.empty();
  const std::int64_t tokens = op.ids.dim(0), channels = packed ? op.packed.k : op.table.dim(1);
  CHECK(is_i32(op.ids, {tokens}));
  CHECK(computes(op.y.dtype));
  if (packed) {
    const TensorView& panels = op.packed.panels;
    // The view that panels of [n, channels] must be, to compare shapes with.
    const TensorView shape = packed_weight(panels.data, op.y.dtype, op.packed.n, channels).panels;
    // A GPU's packed weight has a layout of its own (matmul.h), which forward does not read.
    CHECK(stream.device == device::DeviceKind::kCpu && panels.dense());
    CHECK(is(op.y.dtype, panels, {shape.dim(0), shape.dim(1), shape.dim(2)}));
  } else {
    CHECK(is(op.y.dtype, op.table, {op.table.dim(0), channels}));
  }
  CHECK(is(op.y.dtype, op.y, {tokens, channels}));
  CHECK(op.drawn.empty() || is_i32(op.drawn, {op.drawn.dim(0)}));
  backend(stream.device).embedding(stream, op);
}

void embedding(const Stream& stream, const EmbeddingBackward& op) {
  const std::int64_t tokens = op.ids.dim(0), channels = op.dtable.dim(1);
  CHECK(is_i32(op.ids, {tokens}));
  CHECK(is_f32(op.dtable, {op.dtable.dim(0), channels}));
  CHECK(computes(op.dy.dtype) && is(op.dy.dtype, op.dy, {tokens, channels}));
  backend(stream.device).embedding_backward(stream, op);
}

}  // namespace tandem::kernels
