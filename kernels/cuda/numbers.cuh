// f32 and bf16 operands: arithmetic is f32, storage is T. A kernel reads and writes packs of 16
// bytes, the widest access of a thread.
//
// A pack holds the same elements whether it is read in one access (kVector) or element by element,
// so the alignment of an operand does not change the result. Kernels are compiled for both, and the
// host chooses with packs_align and with_flag:
//
//   with_flag(packs_align({op.x, op.y}), [&](auto vector) {
//     launch(stream, shape, kernel<T, vector>, …);
//   });
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include "kernels/cuda/primitives.cuh"
#include "runtime/base/check.h"
#include "runtime/device/tensor_view.h"

namespace tandem::kernels::cuda {

using Bf16 = __nv_bfloat16;

__device__ __forceinline__ float to_float(float x) { return x; }
__device__ __forceinline__ float to_float(Bf16 x) { return __bfloat162float(x); }

// Storage of an f32 as T.
template <class T>
__device__ __forceinline__ T from_float(float x);
template <>
__device__ __forceinline__ float from_float<float>(float x) {
  return x;
}
template <>
__device__ __forceinline__ Bf16 from_float<Bf16>(float x) {
  return __float2bfloat16_rn(x);  // to nearest, ties to even, as dtype.h narrows
}

__device__ __forceinline__ unsigned short bits_of(Bf16 x) { return __bfloat16_as_ushort(x); }

// The value of x after it has been stored as T and read again.
template <class T>
__device__ __forceinline__ float rounded(float x) {
  return to_float(from_float<T>(x));
}

// Elements of a pack: 4 of f32, 8 of bf16.
template <class T>
inline constexpr int kPack = static_cast<int>(16 / sizeof(T));

// The elements of one pack, widened.
template <class T>
struct Pack {
  float at[kPack<T>];
};

// Holds as many elements of T as a pack of P. A kernel with operands of two dtypes uses the packs
// of the wider dtype P = float; its accesses to bf16 operands then take 8 bytes.
template <class T, class P>
struct alignas(sizeof(T) * kPack<P>) PackBits {
  static_assert(sizeof(T) <= sizeof(P));
  T at[kPack<P>];
};

// Loads the first `count` elements at `from`, at most a pack; further elements of the pack are
// zeros. count is at least 1. With kVector `from` must be aligned to the pack's bytes.
template <bool kVector, class T, class P = T>
__device__ __forceinline__ Pack<P> load_pack(const T* from, std::int64_t count) {
  Pack<P> pack;
  if (kVector && count >= kPack<P>) {
    const auto bits = *reinterpret_cast<const PackBits<T, P>*>(from);
    for (int i = 0; i < kPack<P>; ++i) pack.at[i] = to_float(bits.at[i]);
    return pack;
  }
  for (int i = 0; i < kPack<P>; ++i) pack.at[i] = i < count ? to_float(from[i]) : 0.0f;
  return pack;
}

// Stores the first `count` elements of a pack, at most all of them, rounded to T.
template <bool kVector, class T, class P>
__device__ __forceinline__ void store_pack(T* to, const Pack<P>& pack, std::int64_t count) {
  if (kVector && count >= kPack<P>) {
    PackBits<T, P> bits;
    for (int i = 0; i < kPack<P>; ++i) bits.at[i] = from_float<T>(pack.at[i]);
    store_whole(to, bits);
    return;
  }
  for (int i = 0; i < kPack<P> && i < count; ++i) to[i] = from_float<T>(pack.at[i]);
}

// Whether every row of each view (empty ones aside) begins at a multiple of 16 bytes. In a view of
// rank 3 the rows are its heads.
inline bool packs_align(std::initializer_list<device::TensorView> views) {
  for (const device::TensorView& view : views) {
    if (view.empty()) continue;
    const auto address = reinterpret_cast<std::uintptr_t>(view.data);
    const auto size = static_cast<std::int64_t>(device::size_bytes(view.dtype));
    if (address % 16 != 0) return false;
    if (view.rank > 1 && view.row_stride * size % 16 != 0) return false;
    if (view.rank > 2 && view.dim(view.rank - 1) * size % 16 != 0) return false;
  }
  return true;
}

// The first element in device memory, which the host must not read; null if the view is empty.
template <class T>
T* data(const device::TensorView& view) {
  return static_cast<T*>(view.data);
}

// Calls body(T{}) with the C++ type of a floating dtype, f32 or bf16. Operators compute on no other
// dtype; one is a bug.
template <class Body>
void with_type(device::DType dtype, const Body& body) {
  switch (dtype) {
    case device::DType::kF32:
      return body(float{});
    case device::DType::kBF16:
      return body(Bf16{});
    case device::DType::kF16:
    case device::DType::kI32:
    case device::DType::kU8:
      break;
  }
  CHECK(false);
}

// Calls body(std::true_type{}) or body(std::false_type{}): a run-time flag as a constant.
template <class Body>
void with_flag(bool flag, const Body& body) {
  if (flag) {
    body(std::true_type{});
  } else {
    body(std::false_type{});
  }
}

}  // namespace tandem::kernels::cuda
