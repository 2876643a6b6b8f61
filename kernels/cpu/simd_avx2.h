// The 16-lane vector on AVX2 and FMA: two halves of eight lanes, `lo` with lanes 0 … 7. simd.h
// defines each function; comments here say how AVX2 computes it.
#pragma once

#include <immintrin.h>

#include "kernels/cpu/element.h"

namespace tandem::kernels::TANDEM_CPU_ISA {

struct F32x16 {
  __m256 lo, hi;
};
struct Mask16 {
  __m256 lo, hi;
};
struct Pairs16 {
  __m256i lo, hi;
};

// Sums that a tile (tile.h) can hold in registers, counted in 16-lane vectors of two registers, and
// the most rows of a tile. There are 16 registers; 12 hold sums of f32. Pairs need more of them for
// their even and odd terms, which leaves 8 for sums.
inline constexpr int kTileVectors = 6;
inline constexpr int kTileRowsMax = 6;
inline constexpr int kPairTileVectors = 4;
inline constexpr int kPairTileRowsMax = 4;
// Whether products of pairs by many rows take f32 tiles, on operands that are widened once. To
// widen them in each step takes as many instructions as to multiply them.
inline constexpr bool kWidensPairs = true;

#define TANDEM_INLINE [[gnu::always_inline]] inline

TANDEM_INLINE F32x16 zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
TANDEM_INLINE F32x16 set(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
TANDEM_INLINE F32x16 load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
TANDEM_INLINE void store(float* p, F32x16 a) {
  _mm256_storeu_ps(p, a.lo);
  _mm256_storeu_ps(p + 8, a.hi);
}
// A mask is a vector whose selected lanes have all bits set, as comparisons make it.
TANDEM_INLINE Mask16 first(int n) {
  const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return {_mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32(n), lanes)),
          _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32(n - 8), lanes))};
}
// Masked accesses touch no memory past lane n, so the end of a row may be the end of a buffer.
// Whole vectors do without: a masked store takes several times as long as a plain one, and a load
// of what it stored must wait for it.
TANDEM_INLINE F32x16 load(const float* p, int n) {
  if (n == 16) return load(p);
  const Mask16 m = first(n);
  return {_mm256_maskload_ps(p, _mm256_castps_si256(m.lo)),
          _mm256_maskload_ps(p + 8, _mm256_castps_si256(m.hi))};
}
TANDEM_INLINE void store(float* p, F32x16 a, int n) {
  if (n == 16) return store(p, a);
  const Mask16 m = first(n);
  _mm256_maskstore_ps(p, _mm256_castps_si256(m.lo), a.lo);
  _mm256_maskstore_ps(p + 8, _mm256_castps_si256(m.hi), a.hi);
}

// Half a vector from bf16 and, as integers of 32 bits, to bf16. A bf16 is the upper half of an f32.
TANDEM_INLINE __m256 widen_half(const Bf16* p) {
  const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}
// Rounds to nearest, ties to even: 0x7fff plus the last bit that is kept carries into the upper
// half when the lower half is more than half a unit, or exactly half a unit above an odd number. A
// NaN is not rounded, which could make an infinity of it, but gets the bit of a quiet NaN.
TANDEM_INLINE __m256i narrow_half(__m256 a) {
  const __m256i bits = _mm256_castps_si256(a);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i nearest = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  const __m256 kept = _mm256_blendv_ps(_mm256_castsi256_ps(nearest), _mm256_castsi256_ps(quiet),
                                       _mm256_cmp_ps(a, a, _CMP_UNORD_Q));
  return _mm256_srli_epi32(_mm256_castps_si256(kept), 16);
}
TANDEM_INLINE F32x16 load(const Bf16* p) { return {widen_half(p), widen_half(p + 8)}; }
TANDEM_INLINE void store(Bf16* p, F32x16 a) {
  // Packing works within 128 bits, so quarters come as lo, hi, lo, hi; the permutation sorts them.
  const __m256i mixed = _mm256_packus_epi32(narrow_half(a.lo), narrow_half(a.hi));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_permute4x64_epi64(mixed, 0xd8));
}
// AVX2 has no masked access to elements of 16 bits, so the end of a row goes through the stack.
TANDEM_INLINE F32x16 load(const Bf16* p, int n) {
  if (n == 16) return load(p);
  Bf16 rest[16] = {};
  for (int i = 0; i < n; ++i) rest[i] = p[i];
  return load(rest);
}
TANDEM_INLINE void store(Bf16* p, F32x16 a, int n) {
  if (n == 16) return store(p, a);
  Bf16 rest[16];
  store(rest, a);
  for (int i = 0; i < n; ++i) p[i] = rest[i];
}

TANDEM_INLINE F32x16 operator+(F32x16 a, F32x16 b) {
  return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)};
}
TANDEM_INLINE F32x16 operator-(F32x16 a, F32x16 b) {
  return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)};
}
TANDEM_INLINE F32x16 operator*(F32x16 a, F32x16 b) {
  return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)};
}
TANDEM_INLINE F32x16 operator/(F32x16 a, F32x16 b) {
  return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)};
}
TANDEM_INLINE F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {
  return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
TANDEM_INLINE F32x16 fnma(F32x16 a, F32x16 b, F32x16 c) {
  return {_mm256_fnmadd_ps(a.lo, b.lo, c.lo), _mm256_fnmadd_ps(a.hi, b.hi, c.hi)};
}
TANDEM_INLINE F32x16 min(F32x16 a, F32x16 b) {
  return {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)};
}
TANDEM_INLINE F32x16 max(F32x16 a, F32x16 b) {
  return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)};
}
TANDEM_INLINE F32x16 sqrt(F32x16 a) { return {_mm256_sqrt_ps(a.lo), _mm256_sqrt_ps(a.hi)}; }
TANDEM_INLINE F32x16 round(F32x16 a) {
  constexpr int kMode = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  return {_mm256_round_ps(a.lo, kMode), _mm256_round_ps(a.hi, kMode)};
}
// An ordered comparison, which is false for NaN, and quiet, which raises no exception flag for it.
TANDEM_INLINE Mask16 less(F32x16 a, F32x16 b) {
  return {_mm256_cmp_ps(a.lo, b.lo, _CMP_LT_OQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_LT_OQ)};
}
// blendv takes `yes` in the lanes whose mask has its sign bit set.
TANDEM_INLINE F32x16 select(Mask16 m, F32x16 yes, F32x16 no) {
  return {_mm256_blendv_ps(no.lo, yes.lo, m.lo), _mm256_blendv_ps(no.hi, yes.hi, m.hi)};
}
TANDEM_INLINE bool any(Mask16 m) {
  return (_mm256_movemask_ps(m.lo) | _mm256_movemask_ps(m.hi)) != 0;
}

// The exponent of an f32 is in bits 23 … 30, with 127 added; the bits below are the significand
// without its leading 1.
TANDEM_INLINE __m256 power_of_two_half(__m256 n) {
  const __m256i bits = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
  return _mm256_castsi256_ps(_mm256_slli_epi32(bits, 23));
}
TANDEM_INLINE __m256 binary_exponent_half(__m256 a) {
  const __m256i bits = _mm256_srli_epi32(_mm256_castps_si256(a), 23);
  return _mm256_cvtepi32_ps(_mm256_sub_epi32(bits, _mm256_set1_epi32(127)));
}
TANDEM_INLINE __m256 significand_half(__m256 a) {
  const __m256i bits = _mm256_and_si256(_mm256_castps_si256(a), _mm256_set1_epi32(0x007fffff));
  return _mm256_castsi256_ps(_mm256_or_si256(bits, _mm256_set1_epi32(0x3f800000)));
}
TANDEM_INLINE F32x16 power_of_two(F32x16 n) {
  return {power_of_two_half(n.lo), power_of_two_half(n.hi)};
}
TANDEM_INLINE F32x16 binary_exponent(F32x16 a) {
  return {binary_exponent_half(a.lo), binary_exponent_half(a.hi)};
}
TANDEM_INLINE F32x16 significand(F32x16 a) {
  return {significand_half(a.lo), significand_half(a.hi)};
}

// Lane i of Pairs16 has the even term in its lower 16 bits and the odd term in its upper ones.
TANDEM_INLINE Pairs16 load_pairs(const Bf16* p) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)),
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 16))};
}
TANDEM_INLINE void store_pairs(Bf16* p, Pairs16 a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), a.lo);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 16), a.hi);
}
TANDEM_INLINE Pairs16 set_pair(const Bf16* p) {
  std::int32_t bits;
  __builtin_memcpy(&bits, p, sizeof bits);
  return {_mm256_set1_epi32(bits), _mm256_set1_epi32(bits)};
}
// The lower 16 bits of a widened bf16 are zeros, so the two halves of a lane do not overlap.
TANDEM_INLINE __m256i pairs_half(__m256 even, __m256 odd) {
  return _mm256_or_si256(_mm256_castps_si256(odd),
                         _mm256_srli_epi32(_mm256_castps_si256(even), 16));
}
TANDEM_INLINE Pairs16 pairs(F32x16 even, F32x16 odd) {
  return {pairs_half(even.lo, odd.lo), pairs_half(even.hi, odd.hi)};
}
// The terms as f32: each is moved to, or left in, the upper half of its lane.
TANDEM_INLINE F32x16 even_terms(Pairs16 a) {
  return {_mm256_castsi256_ps(_mm256_slli_epi32(a.lo, 16)),
          _mm256_castsi256_ps(_mm256_slli_epi32(a.hi, 16))};
}
TANDEM_INLINE F32x16 odd_terms(Pairs16 a) {
  const __m256i upper = _mm256_set1_epi32(static_cast<int>(0xffff0000u));
  return {_mm256_castsi256_ps(_mm256_and_si256(a.lo, upper)),
          _mm256_castsi256_ps(_mm256_and_si256(a.hi, upper))};
}
// The odd term comes first, as in the instruction of simd_avx512bf16.h.
TANDEM_INLINE F32x16 dot(Pairs16 a, Pairs16 b, F32x16 sum) {
  return fma(even_terms(a), even_terms(b), fma(odd_terms(a), odd_terms(b), sum));
}

TANDEM_INLINE __m256 low_half(F32x16 a) { return a.lo; }
TANDEM_INLINE __m256 high_half(F32x16 a) { return a.hi; }

}  // namespace tandem::kernels::TANDEM_CPU_ISA
