// The 16-lane vector on AVX-512 without its instructions for bf16: products of pairs are two fused
// multiply-adds on widened terms. They need FlushDenormals (tile.cc) to have the bits of the
// instruction.
#pragma once

#include "kernels/cpu/simd_avx512_lanes.h"

namespace tandem::kernels::TANDEM_CPU_ISA {

// The terms as f32: each is moved to, or left in, the upper half of its lane.
TANDEM_INLINE F32x16 even_terms(Pairs16 a) {
  return {_mm512_castsi512_ps(_mm512_slli_epi32(a.v, 16))};
}
TANDEM_INLINE F32x16 odd_terms(Pairs16 a) {
  return {
      _mm512_castsi512_ps(_mm512_and_epi32(a.v, _mm512_set1_epi32(static_cast<int>(0xffff0000u))))};
}
// The odd term comes first, as in the instruction of simd_avx512bf16.h.
TANDEM_INLINE F32x16 dot(Pairs16 a, Pairs16 b, F32x16 sum) {
  return fma(even_terms(a), even_terms(b), fma(odd_terms(a), odd_terms(b), sum));
}

}  // namespace tandem::kernels::TANDEM_CPU_ISA
