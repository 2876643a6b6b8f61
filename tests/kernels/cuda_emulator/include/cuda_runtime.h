// The part of CUDA C++ that our kernels are written in, for g++: the same .cu sources run on a CPU.
// Kernels use nothing that is not declared here; the declared functions keep CUDA's rules and end
// the process with a message where one is broken (emulator.h says which).
//
// Left out on purpose: atomics on floats (their order is not fixed), rsqrtf and the __…f
// approximations (their bits differ from any other device's).
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <source_location>
#include <tuple>
#include <utility>

#include "emulated_host.h"
#include "tests/kernels/cuda_emulator/emulator.h"

#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(bytes) alignas(bytes)
// A block runs on one thread of the host, so its threads share what that thread has. All of the
// module's thread-local memory is shared memory, which is how the emulator finds it to poison it.
// (A linker section would do, but for templates GCC ignores it.)
#define __shared__ static thread_local

using std::max;
using std::min;

// The coordinates of the thread that runs now.
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
inline constexpr int warpSize = 32;

using EmulatedPlace = std::source_location;

inline void __syncthreads(EmulatedPlace where = EmulatedPlace::current()) {
  tandem::emulator::barrier(where);
}
inline void __syncwarp(unsigned lanes = 0xffffffffu,
                       EmulatedPlace where = EmulatedPlace::current()) {
  tandem::emulator::exchange(lanes, 0, tandem::emulator::lane(), where);
}
// Threads run one at a time, so what one has written the next one sees.
inline void __threadfence() {}
inline void __threadfence_block() {}

template <class T>
T emulated_exchange(unsigned lanes, T value, int from, EmulatedPlace where) {
  static_assert(sizeof(T) <= 8);
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = tandem::emulator::exchange(lanes, bits, from, where);
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}
// Lanes of one segment of `width` exchange; a lane whose partner is outside keeps its own.
template <class T>
T __shfl_sync(unsigned lanes, T value, int from, int width = 32,
              EmulatedPlace where = EmulatedPlace::current()) {
  const int own = tandem::emulator::lane();
  return emulated_exchange(lanes, value, (own & ~(width - 1)) + (from & (width - 1)), where);
}
template <class T>
T __shfl_xor_sync(unsigned lanes, T value, int step, int width = 32,
                  EmulatedPlace where = EmulatedPlace::current()) {
  const int own = tandem::emulator::lane(), from = own ^ step;
  const bool inside = (from & ~(width - 1)) <= (own & ~(width - 1));
  return emulated_exchange(lanes, value, inside ? from : own, where);
}
template <class T>
T __shfl_down_sync(unsigned lanes, T value, unsigned step, int width = 32,
                   EmulatedPlace where = EmulatedPlace::current()) {
  const int own = tandem::emulator::lane(), from = own + static_cast<int>(step);
  const bool inside = (own & (width - 1)) + static_cast<int>(step) < width;
  return emulated_exchange(lanes, value, inside ? from : own, where);
}
template <class T>
T __shfl_up_sync(unsigned lanes, T value, unsigned step, int width = 32,
                 EmulatedPlace where = EmulatedPlace::current()) {
  const int own = tandem::emulator::lane(), from = own - static_cast<int>(step);
  const bool inside = (own & (width - 1)) >= static_cast<int>(step);
  return emulated_exchange(lanes, value, inside ? from : own, where);
}
inline unsigned __ballot_sync(unsigned lanes, int predicate,
                              EmulatedPlace where = EmulatedPlace::current()) {
  return tandem::emulator::ballot(lanes, predicate != 0, where);
}
inline int __any_sync(unsigned lanes, int predicate,
                      EmulatedPlace where = EmulatedPlace::current()) {
  return tandem::emulator::ballot(lanes, predicate != 0, where) != 0;
}
inline int __all_sync(unsigned lanes, int predicate,
                      EmulatedPlace where = EmulatedPlace::current()) {
  return tandem::emulator::ballot(lanes, predicate != 0, where) == lanes;
}

template <class T>
concept EmulatedInteger = std::is_integral_v<T>;
template <EmulatedInteger T>
T atomicAdd(T* at, T more) {
  const T before = *at;
  *at = static_cast<T>(before + more);
  return before;
}
template <EmulatedInteger T>
T atomicMax(T* at, T other) {
  const T before = *at;
  *at = std::max(before, other);
  return before;
}
template <EmulatedInteger T>
T atomicMin(T* at, T other) {
  const T before = *at;
  *at = std::min(before, other);
  return before;
}
template <EmulatedInteger T>
T atomicOr(T* at, T other) {
  const T before = *at;
  *at = before | other;
  return before;
}
template <EmulatedInteger T>
T atomicExch(T* at, T other) {
  return std::exchange(*at, other);
}
template <EmulatedInteger T>
T atomicCAS(T* at, T expected, T other) {
  const T before = *at;
  if (before == expected) *at = other;
  return before;
}

inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float a) { return std::sqrt(a); }
inline float __int_as_float(int bits) { return std::bit_cast<float>(bits); }
inline float __uint_as_float(unsigned bits) { return std::bit_cast<float>(bits); }
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
// Saturating; NaN is 0.
inline int __float2int_rn(float x) {
  if (!(x >= -0x1p31f)) return std::isnan(x) ? 0 : INT32_MIN;
  return x >= 0x1p31f ? INT32_MAX : static_cast<int>(std::nearbyint(x));
}
inline int __float2int_rz(float x) { return __float2int_rn(std::trunc(x)); }
inline float __int2float_rn(int x) { return static_cast<float>(x); }
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>((std::uint64_t{a} * b) >> 32);
}
inline int __popc(unsigned x) { return std::popcount(x); }
inline int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
inline int __ffs(int x) { return x == 0 ? 0 : std::countr_zero(static_cast<unsigned>(x)) + 1; }
template <class T>
T __ldg(const T* at) {
  return *at;
}
