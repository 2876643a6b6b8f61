// The words that every operator header uses, and the checks of shapes that every operator makes.
//
// Rows of operands may lie apart (TensorView's row_stride) unless an operator says dense. All of an
// operator's views are on its stream's device. An operand that a header calls "or empty" is left
// out by a view without memory.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "runtime/device/stream.h"
#include "runtime/device/tensor_view.h"

namespace tandem::kernels {

using device::Stream;
using device::TensorView;

// How a result is stored in an output that an operator can add to.
enum class Output : std::uint8_t {
  kWrite,  // the result alone
  kAdd,    // the output's own value plus the result: a residual branch costs no pass of its own
};

// Whether operators compute on this dtype: f32 and bf16. With either, sums, statistics and
// gradients of parameters are f32. Results in bf16 are rounded to nearest, ties to even.
bool computes(device::DType dtype);

// Whether a view has memory and exactly this dtype and shape. A shape of no elements needs no
// memory. One-dimensional views must be dense; rows of others must not overlap.
bool is(device::DType dtype, const TensorView& view, std::initializer_list<std::int64_t> shape);
bool is_f32(const TensorView& view, std::initializer_list<std::int64_t> shape);
bool is_i32(const TensorView& view, std::initializer_list<std::int64_t> shape);

}  // namespace tandem::kernels
