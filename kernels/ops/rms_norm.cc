#include "kernels/ops/rms_norm.h"

#include "kernels/backend.h"

namespace tandem::kernels {

namespace {

std::int64_t channels(const TensorView& x) { return x.dim(x.rank - 1); }

// Whether a view has x's dtype and shape.
bool is_like(const TensorView& view, const TensorView& x) {
  return x.rank == 3 ? is(x.dtype, view, {x.dim(0), x.dim(1), x.dim(2)})
                     : is(x.dtype, view, {x.dim(0), x.dim(1)});
}

// Whether a view has one f32 for each row of x.
bool is_per_row(const TensorView& view, const TensorView& x) {
  return (x.rank == 3 ? is_f32(view, {x.dim(0), x.dim(1)}) : is_f32(view, {x.dim(0)})) &&
         view.dense();
}

}  // namespace

std::int64_t rms_norm_workspace(device::DeviceKind device, std::int64_t rows,
                                std::int64_t channels) {
  const std::int64_t per_block =
      device == device::DeviceKind::kCpu ? kNormRowsPerBlock : norm_rows_on_gpu(channels);
  return (rows + per_block - 1) / per_block * channels;
}

void rms_norm(const Stream& stream, const RmsNorm& op) {
  CHECK(op.x.rank == 2 || op.x.rank == 3);
  CHECK(computes(op.x.dtype));
  CHECK(is_like(op.x, op.x) && is_like(op.y, op.x));
  CHECK(is(op.x.dtype, op.weight, {channels(op.x)}));
  CHECK(op.inv_rms.empty() || is_per_row(op.inv_rms, op.x));
  // With `add`, x receives the sum and y the normalised row: one memory cannot hold both.
  CHECK(op.add.empty() || (is_like(op.add, op.x) && op.y.data != op.x.data));
  CHECK(op.eps >= 0);
  backend(stream.device).rms_norm(stream, op);
}

void rms_norm(const Stream& stream, const RmsNormBackward& op) {
  CHECK(op.x.rank == 2 || op.x.rank == 3);
  CHECK(computes(op.x.dtype));
  CHECK(is_like(op.x, op.x) && is_like(op.dy, op.x) && is_like(op.dx, op.x));
  CHECK(is(op.x.dtype, op.weight, {channels(op.x)}) && is_f32(op.dweight, {channels(op.x)}));
  CHECK(is_per_row(op.inv_rms, op.x));
  CHECK(op.output == Output::kWrite || op.dx.empty() || op.dx.data != op.dy.data);
  const std::int64_t rows = op.x.elements() / channels(op.x);
  const std::int64_t needed = rms_norm_workspace(stream.device, rows, channels(op.x));
  CHECK(op.workspace.elements() >= needed && op.workspace.dense());
  backend(stream.device).rms_norm_backward(stream, op);
}

}  // namespace tandem::kernels
