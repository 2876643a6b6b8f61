// The 16-lane vector on AVX-512 with its product of pairs of bf16, which ignores MXCSR: it always
// rounds to nearest even and takes denormals, operands and results, for zeros.
#pragma once

#include "kernels/cpu/simd_avx512_lanes.h"

namespace tandem::kernels::TANDEM_CPU_ISA {

TANDEM_INLINE F32x16 dot(Pairs16 a, Pairs16 b, F32x16 sum) {
  return {
      _mm512_dpbf16_ps(sum.v, reinterpret_cast<__m512bh>(a.v), reinterpret_cast<__m512bh>(b.v))};
}

}  // namespace tandem::kernels::TANDEM_CPU_ISA
