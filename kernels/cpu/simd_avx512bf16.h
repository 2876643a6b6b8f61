// The 16-lane vector on AVX-512 with the instruction vdpbf16ps for products of pairs of bf16. This
// instruction ignores MXCSR: it always rounds to nearest even and takes denormals, operands and
// results, for zeros. MM-1 has its order of sums, which the other instruction sets repeat.
#pragma once

#include "kernels/cpu/simd_avx512_lanes.h"

namespace tandem::kernels::TANDEM_CPU_ISA {

TANDEM_INLINE F32x16 dot(Pairs16 a, Pairs16 b, F32x16 sum) {
  return {
      _mm512_dpbf16_ps(sum.v, reinterpret_cast<__m512bh>(a.v), reinterpret_cast<__m512bh>(b.v))};
}

}  // namespace tandem::kernels::TANDEM_CPU_ISA
