#include "kernels/ops/embedding.h"

#include "kernels/backend.h"

namespace tandem::kernels {

void embedding(const Stream& stream, const Embedding& op) {
  const bool packed = op.table.empty();
  const std::int64_t tokens = op.ids.dim(0), channels = packed ? op.packed.k : op.table.dim(1);
  CHECK(is_i32(op.ids, {tokens}));
  CHECK(computes(stream, op.y.dtype));
  if (packed) {
    CHECK(stream.device == runtime::DeviceKind::kCpu && op.y.dtype == runtime::DType::kF32);
    CHECK(packed_elements(op.packed.n, channels) == op.packed.panels.elements());
    CHECK(is_f32(op.packed.panels, {op.packed.panels.dim(0), channels, kPanelColumns}));
    CHECK(op.packed.panels.dense());
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
  CHECK(computes(stream, op.dy.dtype) && is(op.dy.dtype, op.dy, {tokens, channels}));
  backend(stream.device).embedding_backward(stream, op);
}

}  // namespace tandem::kernels
