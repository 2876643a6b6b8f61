// Sixteen f32 lanes with the same results on every instruction set: each lane function is one IEEE
// operation (fma is fused), each reduction one fixed tree.
//
// Sources in cpu/ are compiled once per instruction set; the build defines the namespace
// (TANDEM_CPU_ISA) and the header of its vector (TANDEM_SIMD_HEADER). Everything here is always
// inlined, and those sources use no library template that could be emitted out of line: the linker
// keeps one copy of such a function, possibly one with instructions that this machine lacks.
//
//   load(p, n), store(p, a, n)   the first n lanes (0 … 16), no other memory is touched; the other
//                                lanes load as zeros. A load of bf16 widens, and a store rounds as
//                                dtype.h does
//   load(p), store(p, a)         all 16 lanes; no alignment is needed
//   set(x), zero()               one value in every lane
//   first(n)                     a mask of the first n lanes
//   select(m, yes, no)           by lane
//   less(a, b)                   by lane; false where one of them is NaN
//   fma(a, b, c) = a * b + c     fnma(a, b, c) = c - a * b
//   min, max                     of x86: the second operand where one of them is NaN
//   round(a)                     to the nearest integer, ties to even
//   power_of_two(n)              2^n for integral n in -126 … 127
//   binary_exponent(a), significand(a)
//                                of a positive normal a = significand * 2^exponent, with the
//                                significand in [1, 2)
//
// Pairs16 has two bf16 per lane, an even term and an odd one, which lie side by side in memory:
//   set_pair(p)          the pair at p in every lane
//   pairs(even, odd)     from lanes that were loaded from bf16
//   even_terms(a), odd_terms(a)   the terms as f32
//   dot(a, b, sum) = fma(a.even, b.even, fma(a.odd, b.odd, sum))   under FlushDenormals (tile.cc)
#pragma once

#include TANDEM_SIMD_HEADER

#include <cstdint>

namespace tandem::kernels::TANDEM_CPU_ISA {

inline constexpr std::int64_t kLanes = 16;

// Lanes in use when `left` elements remain.
TANDEM_INLINE int lanes(std::int64_t left) {
  return left < kLanes ? static_cast<int>(left) : static_cast<int>(kLanes);
}

// The sum of all lanes in one tree: lane i is added to lane i + 8, then i + 4, i + 2, i + 1.
TANDEM_INLINE float reduce_add(F32x16 a) {
  const __m256 eight = _mm256_add_ps(low_half(a), high_half(a));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}

TANDEM_INLINE float reduce_max(F32x16 a) {
  const __m256 eight = _mm256_max_ps(low_half(a), high_half(a));
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}

TANDEM_INLINE float lane_zero(F32x16 a) { return _mm256_cvtss_f32(low_half(a)); }

TANDEM_INLINE float widened(float element) { return element; }
TANDEM_INLINE float widened(Bf16 element) {
  return __builtin_bit_cast(float, static_cast<std::uint32_t>(element.bits) << 16);
}

}  // namespace tandem::kernels::TANDEM_CPU_ISA
