// The 16-lane vector on AVX-512 without its instructions for bf16.
#pragma once

#include "kernels/cpu/simd_avx512_lanes.h"

namespace tandem::kernels::TANDEM_CPU_ISA {

TANDEM_INLINE F32x16 even_terms(Pairs16 a) {
  return {_mm512_castsi512_ps(_mm512_slli_epi32(a.v, 16))};
}
TANDEM_INLINE F32x16 odd_terms(Pairs16 a) {
  return {
      _mm512_castsi512_ps(_mm512_and_epi32(a.v, _mm512_set1_epi32(static_cast<int>(0xffff0000u))))};
}
TANDEM_INLINE F32x16 dot(Pairs16 a, Pairs16 b, F32x16 sum) {
  return fma(even_terms(a), even_terms(b), fma(odd_terms(a), odd_terms(b), sum));
}

}  // namespace tandem::kernels::TANDEM_CPU_ISA
