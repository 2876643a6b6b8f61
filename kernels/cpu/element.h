// The element types of operands: float, and bf16, which is a type of storage alone. Lanes of either
// load as f32, and a store rounds to the element (simd.h).
//
// Templates over the element type T are instantiated for both, and an operator calls the one that
// its dtype asks for by with_type:
//
//   with_type(op.x.dtype, [&]<class T>(T) { forward<T>(stream, op); });
#pragma once

#include <cstdint>

#include "runtime/device/tensor_view.h"

namespace tandem::kernels::TANDEM_CPU_ISA {

// The upper half of an f32's bits. A type of its own, so that no integer is taken for a number.
struct Bf16 {
  std::uint16_t bits = 0;
};

inline constexpr std::int64_t kLineBytes = 64;  // bytes of a cache line

// The dtype of a view that holds elements of type T.
template <class T>
inline constexpr device::DType kDType = device::DType::kF32;
template <>
inline constexpr device::DType kDType<Bf16> = device::DType::kBF16;

// The first element of a view; null if the view is empty. An element type other than the view's is
// a bug.
template <class T>
[[gnu::always_inline]] inline T* data(const device::TensorView& view) {
  CHECK(view.empty() || view.dtype == kDType<T>);
  return static_cast<T*>(view.data);
}

// Calls body(T{}) with the element type T of a dtype that operators compute in.
template <class Body>
[[gnu::always_inline]] inline void with_type(device::DType dtype, const Body& body) {
  if (dtype == device::DType::kBF16) return body(Bf16{});
  CHECK(dtype == device::DType::kF32);
  body(float{});
}

}  // namespace tandem::kernels::TANDEM_CPU_ISA
