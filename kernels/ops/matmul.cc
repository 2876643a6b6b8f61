#include "kernels/ops/matmul.h"

#include "kernels/backend.h"
#include "runtime/base/check.h"

namespace tandem::kernels {

namespace {

std::int64_t panels(std::int64_t n) { return (n + kPanelColumns - 1) / kPanelColumns; }

// The terms of a panel with those that fill it up: bf16 takes terms in pairs.
std::int64_t terms(device::DType dtype, std::int64_t k) {
  return dtype == device::DType::kBF16 ? (k + 1) / 2 * 2 : k;
}

// The alignment is that of a cache line: a step of a panel is read in whole lines.
bool is_packed(const PackedWeight& weight) {
  const auto address = reinterpret_cast<std::uintptr_t>(weight.panels.data);
  const device::DType dtype = weight.panels.dtype;
  return is(dtype, weight.panels, {panels(weight.n), terms(dtype, weight.k), kPanelColumns}) &&
         weight.panels.dense() && address % 64 == 0;
}

// Whether a view can hold the product of operands of `dtype`: in that dtype, or as f32 sums.
bool is_product(device::DType dtype, const TensorView& view,
                std::initializer_list<std::int64_t> shape) {
  return is(dtype, view, shape) || is_f32(view, shape);
}

}  // namespace

std::int64_t packed_elements(device::DType dtype, std::int64_t n, std::int64_t k) {
  return panels(n) * terms(dtype, k) * kPanelColumns;
}

PackedWeight packed_weight(void* memory, device::DType dtype, std::int64_t n, std::int64_t k) {
  const auto shape = {panels(n), terms(dtype, k), kPanelColumns};
  return {.panels = device::tensor(memory, dtype, shape), .n = n, .k = k};
}

void pack_weight(const Stream& stream, const PackWeight& op) {
  CHECK(computes(op.weight.dtype) && op.packed.panels.dtype == op.weight.dtype);
  CHECK(is(op.weight.dtype, op.weight, {op.packed.n, op.packed.k}));
  CHECK(is_packed(op.packed));
  backend(stream.device).pack_weight(stream, op);
}

void matmul(const Stream& stream, const Matmul& op) {
  const std::int64_t rows = op.x.dim(0);
  CHECK(computes(op.x.dtype) && op.weight.panels.dtype == op.x.dtype);
  CHECK(is_packed(op.weight));
  CHECK(is(op.x.dtype, op.x, {rows, op.weight.k}));
  CHECK(is_product(op.x.dtype, op.y, {rows, op.weight.n}));
  backend(stream.device).matmul(stream, op);
}

void matmul(const Stream& stream, const MatmulPlain& op) {
  const std::int64_t rows = op.x.dim(0), inputs = op.x.dim(1), outputs = op.y.dim(1);
  CHECK(computes(op.x.dtype));
  CHECK(is(op.x.dtype, op.x, {rows, inputs}));
  CHECK(is(op.x.dtype, op.weight, {outputs, inputs}));
  CHECK(is_product(op.x.dtype, op.y, {rows, outputs}));
  backend(stream.device).matmul_plain(stream, op);
}

void matmul(const Stream& stream, const MatmulBackwardInput& op) {
  const std::int64_t rows = op.dy.dim(0), outputs = op.dy.dim(1), inputs = op.dx.dim(1);
  CHECK(computes(op.dy.dtype));
  CHECK(is(op.dy.dtype, op.dy, {rows, outputs}));
  CHECK(is(op.dy.dtype, op.weight, {outputs, inputs}));
  CHECK(is(op.dy.dtype, op.dx, {rows, inputs}));
  // An output of a row reads the whole row of dy.
  CHECK(op.dx.empty() || op.dx.data != op.dy.data);
  backend(stream.device).matmul_backward_input(stream, op);
}

void matmul(const Stream& stream, const MatmulBackwardWeight& op) {
  const std::int64_t rows = op.dy.dim(0), outputs = op.dy.dim(1), inputs = op.x.dim(1);
  CHECK(computes(op.dy.dtype));
  CHECK(is(op.dy.dtype, op.dy, {rows, outputs}));
  CHECK(is(op.dy.dtype, op.x, {rows, inputs}));
  CHECK(is_f32(op.dweight, {outputs, inputs}));
  backend(stream.device).matmul_backward_weight(stream, op);
}

}  // namespace tandem::kernels
