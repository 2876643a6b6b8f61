#include "kernels/operand.h"

namespace tandem::kernels {

bool computes(device::DType dtype) {
  return dtype == device::DType::kF32 || dtype == device::DType::kBF16;
}

bool is(device::DType dtype, const TensorView& view, std::initializer_list<std::int64_t> shape) {
  if (view.dtype != dtype || view.rank != static_cast<int>(shape.size())) return false;
  for (int i = 0; i < view.rank; ++i) {
    if (view.dim(i) != shape.begin()[i]) return false;
  }
  // A batch without rows may come without memory.
  if (view.elements() == 0) return true;
  if (view.empty()) return false;
  return view.rank == 1 ? view.dense() : view.row_stride >= view.row_elements();
}

bool is_f32(const TensorView& view, std::initializer_list<std::int64_t> shape) {
  return is(device::DType::kF32, view, shape);
}

bool is_i32(const TensorView& view, std::initializer_list<std::int64_t> shape) {
  return is(device::DType::kI32, view, shape);
}

}  // namespace tandem::kernels
