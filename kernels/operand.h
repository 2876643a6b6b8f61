// The words that every operator header uses. Rows of operands may lie apart (TensorView's
// row_stride) unless an operator says dense. All of an operator's views are on its stream's device.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "runtime/device/stream.h"
#include "runtime/device/tensor_view.h"

namespace tandem::kernels {

using runtime::Stream;
using runtime::TensorView;

// What becomes of an output that an operator can add to.
enum class Output : std::uint8_t {
  kWrite,  // the result alone
  kAdd,    // added to what is there: a residual branch costs no pass of its own
};

// Whether operators compute on this dtype: f32 and bf16. Sums, statistics and gradients of
// parameters are f32 all the same; results in bf16 are rounded to nearest, ties to even.
bool computes(runtime::DType dtype);

// Whether a view is there and is of exactly this shape. One-dimensional views must be dense.
bool is(runtime::DType dtype, const TensorView& view, std::initializer_list<std::int64_t> shape);
bool is_f32(const TensorView& view, std::initializer_list<std::int64_t> shape);
bool is_i32(const TensorView& view, std::initializer_list<std::int64_t> shape);

}  // namespace tandem::kernels
