#include "kernels/operand.h"

namespace tandem::kernels {

namespace {

bool has(const TensorView& view, runtime::DType dtype, std::initializer_list<std::int64_t> shape) {
  if (view.dtype != dtype || view.rank != static_cast<int>(shape.size())) return false;
  for (int i = 0; i < view.rank; ++i) {
    if (view.dim(i) != shape.begin()[i]) return false;
  }
  if (view.elements() == 0) return true;
  if (view.empty()) return false;
  return view.rank == 1 ? view.dense() : view.row_stride >= view.row_elements();
}

}  // namespace

bool is_f32(const TensorView& view, std::initializer_list<std::int64_t> shape) {
  return has(view, runtime::DType::kF32, shape);
}

bool is_i32(const TensorView& view, std::initializer_list<std::int64_t> shape) {
  return has(view, runtime::DType::kI32, shape);
}

}  // namespace tandem::kernels
