// exp and log with the bits of the CPU's: the same operations in the same order, on one number.
// kernels/cpu/exponential.h explains the method and its constants; a change there is a change here.
// CUDA's own functions differ in the last bits, and its fast ones by far more.
//
// A fused multiply-add is one where the source says fmaf: the module is compiled with -fmad=false.
#pragma once

#include <cuda_runtime.h>

namespace tandem::kernels::cuda {

inline constexpr float kExpMin = -87.3f;  // below it exp is 0
inline constexpr float kExpMax = 88.0f;   // above it exp is exp(88), which is finite

__device__ __forceinline__ float infinity() { return __int_as_float(0x7f800000); }

// NaN stays NaN: every comparison with it is false.
__device__ __forceinline__ float exponential(float x) {
  const float low = x < kExpMin ? kExpMin : x;
  const float clamped = low > kExpMax ? kExpMax : low;
  // r = x - n ln 2, with ln 2 in two parts.
  const float n = rintf(clamped * 1.44269504088896341f);
  float r = fmaf(-n, 0.693359375f, clamped);
  r = fmaf(-n, -2.12194440e-4f, r);
  float p = 1.9875691500e-4f;
  p = fmaf(p, r, 1.3981999507e-3f);
  p = fmaf(p, r, 8.3334519073e-3f);
  p = fmaf(p, r, 4.1665795894e-2f);
  p = fmaf(p, r, 1.6666665459e-1f);
  p = fmaf(p, r, 5.0000001201e-1f);
  p = fmaf(p, r * r, r) + 1.0f;
  // 2^n: the exponent of an f32 is in bits 23 … 30, with 127 added.
  const float power = __int_as_float((__float2int_rn(n) + 127) << 23);
  return x < kExpMin ? 0.0f : p * power;
}

// Defined for positive normal x. Infinity and NaN give themselves; other x give no useful number.
__device__ __forceinline__ float logarithm(float x) {
  const int bits = __float_as_int(x);
  const float part = __int_as_float((bits & 0x007fffff) | 0x3f800000);
  const float exponent = __int2float_rn(static_cast<int>(static_cast<unsigned>(bits) >> 23) - 127);
  // x = (1 + f) 2^e, with 1 + f between sqrt 1/2 and sqrt 2.
  const bool small = part < 1.41421356237309505f;
  const float e = small ? exponent : exponent + 1.0f;
  const float f = (small ? part : part * 0.5f) - 1.0f;
  float p = 7.0376836292e-2f;
  p = fmaf(p, f, -1.1514610310e-1f);
  p = fmaf(p, f, 1.1676998740e-1f);
  p = fmaf(p, f, -1.2420140846e-1f);
  p = fmaf(p, f, 1.4249322787e-1f);
  p = fmaf(p, f, -1.6668057665e-1f);
  p = fmaf(p, f, 2.0000714765e-1f);
  p = fmaf(p, f, -2.4999993993e-1f);
  p = fmaf(p, f, 3.3333331174e-1f);
  const float square = f * f;
  float y = f * square * p;
  y = fmaf(e, -2.12194440e-4f, y);
  y = fmaf(-0.5f, square, y);
  return x < infinity() ? fmaf(e, 0.693359375f, f + y) : x;
}

}  // namespace tandem::kernels::cuda
