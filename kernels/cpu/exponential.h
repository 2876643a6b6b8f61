// exp and log on 16 lanes, in one fixed order of operations. libm's differ between machines and
// versions; these do not. cuda/exponential.cuh repeats them on one number, with the same bits, so a
// change here is a change there.
//
//   exp x = 2^n exp r                n = x / ln 2 rounded, r = x - n ln 2, |r| <= ln 2 / 2
//   log x = e ln 2 + log(1 + f)      x = (1 + f) 2^e, 1 + f between sqrt 1/2 and sqrt 2
//
// exp r and log(1 + f) are polynomials with the coefficients of Cephes' expf and logf (Moshier,
// public domain): at most 2 ulp where the result is normal. ln 2 is taken in two parts (Cody and
// Waite): 0.693359375 has so few bits that its product with n or e is exact, and the second part
// makes up for its error.
#pragma once

#include "kernels/cpu/simd.h"

namespace tandem::kernels::TANDEM_CPU_ISA {

// Within the bounds n is in -126 … 127, so 2^n is a normal number.
inline constexpr float kExpMin = -87.3f;  // below it exp is 0
inline constexpr float kExpMax = 88.0f;   // above it exp is exp(88), which is finite
inline constexpr float kInfinity = __builtin_inff();

// NaN stays NaN: min and max give their second operand where one is NaN, and x is the second.
TANDEM_INLINE F32x16 exp(F32x16 x) {
  const F32x16 clamped = min(set(kExpMax), max(set(kExpMin), x));
  // r = x - n ln 2, with ln 2 in two parts.
  const F32x16 n = round(clamped * set(1.44269504088896341f));
  F32x16 r = fnma(n, set(0.693359375f), clamped);
  r = fnma(n, set(-2.12194440e-4f), r);
  F32x16 p = set(1.9875691500e-4f);
  p = fma(p, r, set(1.3981999507e-3f));
  p = fma(p, r, set(8.3334519073e-3f));
  p = fma(p, r, set(4.1665795894e-2f));
  p = fma(p, r, set(1.6666665459e-1f));
  p = fma(p, r, set(5.0000001201e-1f));
  p = fma(p, r * r, r) + set(1.0f);
  return select(less(x, set(kExpMin)), zero(), p * power_of_two(n));
}

// Defined for positive normal x. Infinity and NaN give themselves; other x give no useful number.
TANDEM_INLINE F32x16 log(F32x16 x) {
  const F32x16 part = significand(x);
  // x = (1 + f) 2^e, with 1 + f between sqrt 1/2 and sqrt 2.
  const Mask16 small = less(part, set(1.41421356237309505f));
  const F32x16 e = select(small, binary_exponent(x), binary_exponent(x) + set(1.0f));
  const F32x16 f = select(small, part, part * set(0.5f)) - set(1.0f);
  F32x16 p = set(7.0376836292e-2f);
  p = fma(p, f, set(-1.1514610310e-1f));
  p = fma(p, f, set(1.1676998740e-1f));
  p = fma(p, f, set(-1.2420140846e-1f));
  p = fma(p, f, set(1.4249322787e-1f));
  p = fma(p, f, set(-1.6668057665e-1f));
  p = fma(p, f, set(2.0000714765e-1f));
  p = fma(p, f, set(-2.4999993993e-1f));
  p = fma(p, f, set(3.3333331174e-1f));
  const F32x16 square = f * f;
  F32x16 y = f * square * p;
  y = fma(e, set(-2.12194440e-4f), y);
  y = fnma(set(0.5f), square, y);
  return select(less(x, set(kInfinity)), fma(e, set(0.693359375f), f + y), x);
}

// One number, with the bits that a lane gets.
TANDEM_INLINE float exp(float x) { return lane_zero(exp(set(x))); }
TANDEM_INLINE float log(float x) { return lane_zero(log(set(x))); }

}  // namespace tandem::kernels::TANDEM_CPU_ISA
