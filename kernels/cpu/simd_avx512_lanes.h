// The 16-lane vector on AVX-512, for the headers of the two instruction sets with AVX-512
// (simd_avx512.h, simd_avx512bf16.h), which differ in the products of pairs. simd.h defines each
// function; comments here say how AVX-512 computes it.
#pragma once

#include <immintrin.h>

#include "kernels/cpu/element.h"

namespace tandem::kernels::TANDEM_CPU_ISA {

struct F32x16 {
  __m512 v;
};
struct Mask16 {
  __mmask16 bits;
};
struct Pairs16 {
  __m512i v;
};

// Sums that a tile (tile.h) can hold in registers, counted in 16-lane vectors, and the most rows of
// a tile; for f32 and for pairs. 24 of the 32 registers hold sums.
inline constexpr int kTileVectors = 24;
inline constexpr int kTileRowsMax = 12;
inline constexpr int kPairTileVectors = 24;
inline constexpr int kPairTileRowsMax = 12;
// Whether products of pairs by many rows take f32 tiles, on operands that are widened once.
inline constexpr bool kWidensPairs = false;

#define TANDEM_INLINE [[gnu::always_inline]] inline

TANDEM_INLINE F32x16 zero() { return {_mm512_setzero_ps()}; }
TANDEM_INLINE F32x16 set(float x) { return {_mm512_set1_ps(x)}; }
TANDEM_INLINE F32x16 load(const float* p) { return {_mm512_loadu_ps(p)}; }
TANDEM_INLINE void store(float* p, F32x16 a) { _mm512_storeu_ps(p, a.v); }
TANDEM_INLINE Mask16 first(int n) { return {static_cast<__mmask16>((1u << n) - 1u)}; }
// Masked accesses touch no memory past lane n, so the end of a row may be the end of a buffer.
TANDEM_INLINE F32x16 load(const float* p, int n) {
  return {_mm512_maskz_loadu_ps(first(n).bits, p)};
}
TANDEM_INLINE void store(float* p, F32x16 a, int n) {
  _mm512_mask_storeu_ps(p, first(n).bits, a.v);
}

// A bf16 is the upper half of an f32.
TANDEM_INLINE F32x16 widen(__m256i bits) {
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16))};
}
// Rounds to nearest, ties to even: 0x7fff plus the last bit that is kept carries into the upper
// half when the lower half is more than half a unit, or exactly half a unit above an odd number. A
// NaN is not rounded, which could make an infinity of it, but gets the bit of a quiet NaN. The
// processor's own instruction would take denormals for zeros.
TANDEM_INLINE __m256i narrow(F32x16 a) {
  const __m512i bits = _mm512_castps_si512(a.v);
  const __m512i odd = _mm512_and_epi32(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i nearest = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  const __mmask16 nan = _mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q);
  const __m512i kept = _mm512_mask_or_epi32(nearest, nan, bits, _mm512_set1_epi32(0x400000));
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(kept, 16));
}
TANDEM_INLINE F32x16 load(const Bf16* p) {
  return widen(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
TANDEM_INLINE void store(Bf16* p, F32x16 a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), narrow(a));
}
TANDEM_INLINE F32x16 load(const Bf16* p, int n) {
  return widen(_mm256_maskz_loadu_epi16(first(n).bits, p));
}
TANDEM_INLINE void store(Bf16* p, F32x16 a, int n) {
  _mm256_mask_storeu_epi16(p, first(n).bits, narrow(a));
}

// Lane i of Pairs16 has the even term in its lower 16 bits and the odd term in its upper ones.
TANDEM_INLINE Pairs16 load_pairs(const Bf16* p) { return {_mm512_loadu_si512(p)}; }
TANDEM_INLINE void store_pairs(Bf16* p, Pairs16 a) { _mm512_storeu_si512(p, a.v); }
TANDEM_INLINE Pairs16 set_pair(const Bf16* p) {
  std::int32_t bits;
  __builtin_memcpy(&bits, p, sizeof bits);
  return {_mm512_set1_epi32(bits)};
}
// The lower 16 bits of a widened bf16 are zeros, so the two halves of a lane do not overlap.
TANDEM_INLINE Pairs16 pairs(F32x16 even, F32x16 odd) {
  return {_mm512_or_epi32(_mm512_castps_si512(odd.v),
                          _mm512_srli_epi32(_mm512_castps_si512(even.v), 16))};
}

// The terms as f32: each is moved to, or left in, the upper half of its lane.
TANDEM_INLINE F32x16 even_terms(Pairs16 a) {
  return {_mm512_castsi512_ps(_mm512_slli_epi32(a.v, 16))};
}
TANDEM_INLINE F32x16 odd_terms(Pairs16 a) {
  return {
      _mm512_castsi512_ps(_mm512_and_epi32(a.v, _mm512_set1_epi32(static_cast<int>(0xffff0000u))))};
}
TANDEM_INLINE F32x16 operator+(F32x16 a, F32x16 b) { return {_mm512_add_ps(a.v, b.v)}; }
TANDEM_INLINE F32x16 operator-(F32x16 a, F32x16 b) { return {_mm512_sub_ps(a.v, b.v)}; }
TANDEM_INLINE F32x16 operator*(F32x16 a, F32x16 b) { return {_mm512_mul_ps(a.v, b.v)}; }
TANDEM_INLINE F32x16 operator/(F32x16 a, F32x16 b) { return {_mm512_div_ps(a.v, b.v)}; }
TANDEM_INLINE F32x16 fma(F32x16 a, F32x16 b, F32x16 c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
TANDEM_INLINE F32x16 fnma(F32x16 a, F32x16 b, F32x16 c) {
  return {_mm512_fnmadd_ps(a.v, b.v, c.v)};
}
TANDEM_INLINE F32x16 min(F32x16 a, F32x16 b) { return {_mm512_min_ps(a.v, b.v)}; }
TANDEM_INLINE F32x16 max(F32x16 a, F32x16 b) { return {_mm512_max_ps(a.v, b.v)}; }
TANDEM_INLINE F32x16 sqrt(F32x16 a) { return {_mm512_sqrt_ps(a.v)}; }
TANDEM_INLINE F32x16 round(F32x16 a) {
  return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
// An ordered comparison, which is false for NaN, and quiet, which raises no exception flag for it.
TANDEM_INLINE Mask16 less(F32x16 a, F32x16 b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)}; }
TANDEM_INLINE F32x16 select(Mask16 m, F32x16 yes, F32x16 no) {
  return {_mm512_mask_blend_ps(m.bits, no.v, yes.v)};
}
TANDEM_INLINE bool any(Mask16 m) { return m.bits != 0; }

// The exponent of an f32 is in bits 23 … 30, with 127 added; the bits below are the significand
// without its leading 1.
TANDEM_INLINE F32x16 power_of_two(F32x16 n) {
  const __m512i bits = _mm512_add_epi32(_mm512_cvtps_epi32(n.v), _mm512_set1_epi32(127));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(bits, 23))};
}
TANDEM_INLINE F32x16 binary_exponent(F32x16 a) {
  const __m512i bits = _mm512_srli_epi32(_mm512_castps_si512(a.v), 23);
  return {_mm512_cvtepi32_ps(_mm512_sub_epi32(bits, _mm512_set1_epi32(127)))};
}
TANDEM_INLINE F32x16 significand(F32x16 a) {
  const __m512i bits = _mm512_and_epi32(_mm512_castps_si512(a.v), _mm512_set1_epi32(0x007fffff));
  return {_mm512_castsi512_ps(_mm512_or_epi32(bits, _mm512_set1_epi32(0x3f800000)))};
}

TANDEM_INLINE __m256 low_half(F32x16 a) { return _mm512_castps512_ps256(a.v); }
TANDEM_INLINE __m256 high_half(F32x16 a) { return _mm512_extractf32x8_ps(a.v, 1); }

}  // namespace tandem::kernels::TANDEM_CPU_ISA
