#include "runtime/device/tensor_view.h"

namespace tandem::device {

TensorView tensor(void* data, DType dtype, std::initializer_list<std::int64_t> shape) {
  CHECK(shape.size() <= kRankMax);
  TensorView view{.data = data, .dtype = dtype};
  for (const std::int64_t extent : shape) {
    CHECK(extent >= 0);
    view.shape[static_cast<std::size_t>(view.rank++)] = extent;
  }
  view.row_stride = view.row_elements();
  return view;
}

TensorView tensor(const float* data, std::initializer_list<std::int64_t> shape) {
  // TensorView has one pointer type; operators write only to the operands that their headers name.
  return tensor(const_cast<float*>(data), DType::kF32, shape);
}

TensorView tensor(const std::int32_t* data, std::initializer_list<std::int64_t> shape) {
  return tensor(const_cast<std::int32_t*>(data), DType::kI32, shape);
}

std::size_t size_bytes(const TensorView& view) {
  return static_cast<std::size_t>(view.elements()) * size_bytes(view.dtype);
}

namespace {

void* advance(const TensorView& view, std::int64_t elements) {
  if (view.data == nullptr) return nullptr;  // a view that only tells a shape
  return static_cast<std::byte*>(view.data) +
         elements * static_cast<std::int64_t>(size_bytes(view.dtype));
}

}  // namespace

TensorView rows(const TensorView& view, std::int64_t begin, std::int64_t count) {
  CHECK(begin >= 0 && count >= 0 && begin + count <= view.dim(0));
  TensorView part = view;
  part.data = advance(view, begin * view.row_stride);
  part.shape[0] = count;
  return part;
}

TensorView columns(const TensorView& view, std::int64_t begin, std::int64_t count) {
  CHECK(view.rank == 2 && begin >= 0 && count >= 0 && begin + count <= view.dim(1));
  TensorView part = view;
  // The row stride stays, so that the columns left out become gaps between rows.
  part.data = advance(view, begin);
  part.shape[1] = count;
  return part;
}

TensorView split_heads(const TensorView& view, std::int64_t heads) {
  CHECK(view.rank == 2 && heads > 0 && view.dim(1) % heads == 0);
  // Heads of a row are dense, and the row stride counts elements: it holds for the new shape too.
  TensorView split = view;
  split.rank = 3;
  split.shape[1] = heads;
  split.shape[2] = view.dim(1) / heads;
  return split;
}

TensorView reshape(const TensorView& view, std::initializer_list<std::int64_t> shape) {
  const TensorView other = tensor(view.data, view.dtype, shape);
  CHECK(view.dense() && other.elements() == view.elements());
  return other;
}

}  // namespace tandem::device
