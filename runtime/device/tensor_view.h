// A borrowed, row-major tensor: pointer, dtype, shape. A view never owns memory; the block that it
// points to must outlive it. A view has no device: the operator that gets it knows where it runs.
//
// Elements within one index of dimension 0 (a row) are dense. Rows lie `row_stride` elements apart,
// so the q, k and v parts of one fused [T, q|k|v] buffer are views. A view of a const buffer may be
// made: an operator writes only to the operands that its header calls written.
//
// Members are always inlined: kernels are compiled for several instruction sets, and the linker
// must not keep an out-of-line copy that was compiled for one of them and use it for all.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>

#include "runtime/base/check.h"
#include "runtime/device/dtype.h"

namespace tandem::device {

inline constexpr int kRankMax = 4;

struct TensorView {
  void* data = nullptr;
  DType dtype = DType::kF32;
  std::array<std::int64_t, kRankMax> shape{};
  int rank = 0;
  // Elements from one row to the next; more than a row where there are gaps.
  std::int64_t row_stride = 0;

  [[gnu::always_inline]] bool empty() const { return data == nullptr; }
  [[gnu::always_inline]] std::int64_t dim(int i) const {
    CHECK(i >= 0 && i < rank);
    return shape[static_cast<std::size_t>(i)];
  }
  // Elements of one index of dimension 0.
  [[gnu::always_inline]] std::int64_t row_elements() const {
    std::int64_t n = 1;
    for (int i = 1; i < rank; ++i) n *= shape[static_cast<std::size_t>(i)];
    return n;
  }
  [[gnu::always_inline]] std::int64_t elements() const {
    return rank == 0 ? 0 : shape[0] * row_elements();
  }
  // Whether there are no gaps between rows.
  [[gnu::always_inline]] bool dense() const { return row_stride == row_elements() || dim(0) <= 1; }

  // The address of the first element. A wrong dtype is a bug and is CHECKed.
  [[gnu::always_inline]] float* f32() const {
    CHECK(dtype == DType::kF32);
    return static_cast<float*>(data);
  }
  [[gnu::always_inline]] std::int32_t* i32() const {
    CHECK(dtype == DType::kI32);
    return static_cast<std::int32_t*>(data);
  }
  [[gnu::always_inline]] std::uint8_t* u8() const {
    CHECK(dtype == DType::kU8);
    return static_cast<std::uint8_t*>(data);
  }
  [[gnu::always_inline]] std::uint16_t* bits16() const {  // the view must be of bf16 or f16
    CHECK(dtype == DType::kBF16 || dtype == DType::kF16);
    return static_cast<std::uint16_t*>(data);
  }
};

// Makes a dense view. Shapes are outermost first, of at most kRankMax dimensions, none negative
// (CHECKed).
TensorView tensor(void* data, DType dtype, std::initializer_list<std::int64_t> shape);
TensorView tensor(const float* data, std::initializer_list<std::int64_t> shape);
TensorView tensor(const std::int32_t* data, std::initializer_list<std::int64_t> shape);

// Rows [begin, begin + count) of any view.
TensorView rows(const TensorView& view, std::int64_t begin, std::int64_t count);

// Columns [begin, begin + count) of a [R, C] view, as [R, count] with the row stride of the whole.
TensorView columns(const TensorView& view, std::int64_t begin, std::int64_t count);

// A [R, heads * C] view as [R, heads, C].
TensorView split_heads(const TensorView& view, std::int64_t heads);

// Bytes of the view's elements, without the gaps between its rows.
std::size_t size_bytes(const TensorView& view);

// The same elements under another shape; the view must be dense, and the counts must agree
// (CHECKed).
TensorView reshape(const TensorView& view, std::initializer_list<std::int64_t> shape);

}  // namespace tandem::device
