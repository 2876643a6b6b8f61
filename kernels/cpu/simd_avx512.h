// The 16-lane vector on AVX-512 without its instructions for bf16: products of pairs are two fused
// multiply-adds on widened terms. They need FlushDenormals (tile.cc) to have the bits of the
// instruction.
#pragma once

#include "kernels/cpu/simd_avx512_lanes.h"

namespace tandem::kernels::TANDEM_CPU_ISA {

// The odd term comes first, as in the instruction of simd_avx512bf16.h.
TANDEM_INLINE F32x16 dot(Pairs16 a, Pairs16 b, F32x16 sum) {
  return fma(even_terms(a), even_terms(b), fma(odd_terms(a), odd_terms(b), sum));
}

}  // namespace tandem::kernels::TANDEM_CPU_ISA
