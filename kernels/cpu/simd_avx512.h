// The 16-lane vector on AVX-512. simd.h says what each function means.
#pragma once

#include <immintrin.h>

namespace tandem::kernels::TANDEM_CPU_ISA {

struct F32x16 {
  __m512 v;
};
struct Mask16 {
  __mmask16 bits;
};

// Accumulators that a matmul tile can hold in registers, in 16-lane vectors.
inline constexpr int kTileVectors = 24;
inline constexpr int kTileRowsMax = 12;

#define TANDEM_INLINE [[gnu::always_inline]] inline

TANDEM_INLINE F32x16 zero() { return {_mm512_setzero_ps()}; }
TANDEM_INLINE F32x16 set(float x) { return {_mm512_set1_ps(x)}; }
TANDEM_INLINE F32x16 load(const float* p) { return {_mm512_loadu_ps(p)}; }
TANDEM_INLINE void store(float* p, F32x16 a) { _mm512_storeu_ps(p, a.v); }
TANDEM_INLINE Mask16 first(int n) { return {static_cast<__mmask16>((1u << n) - 1u)}; }
TANDEM_INLINE F32x16 load(const float* p, int n) {
  return {_mm512_maskz_loadu_ps(first(n).bits, p)};
}
TANDEM_INLINE void store(float* p, F32x16 a, int n) {
  _mm512_mask_storeu_ps(p, first(n).bits, a.v);
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
TANDEM_INLINE Mask16 less(F32x16 a, F32x16 b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)}; }
TANDEM_INLINE F32x16 select(Mask16 m, F32x16 yes, F32x16 no) {
  return {_mm512_mask_blend_ps(m.bits, no.v, yes.v)};
}
TANDEM_INLINE bool any(Mask16 m) { return m.bits != 0; }

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
