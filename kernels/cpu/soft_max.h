// The sums of one row of logits: log_prob and sample share them (LP-1). Lanes run over the row,
// ascending, then halve; a row's end falls into masked lanes, not into another loop.
#pragma once

#include "kernels/cpu/exponential.h"

namespace tandem::kernels::TANDEM_CPU_ISA {

struct SoftmaxSums {
  float maximum = 0;   // of z = logits * inverse_temperature
  float sum = 0;       // of e = exp(z - maximum)
  float weighted = 0;  // of e * (z - maximum), if asked for
};

template <class T>
TANDEM_INLINE float row_maximum(const T* logits, std::int64_t count, float factor) {
  F32x16 most = set(-kInfinity);
  for (std::int64_t i = 0; i < count; i += kLanes) {
    const int n = lanes(count - i);
    most = max(select(first(n), load(logits + i, n) * set(factor), set(-kInfinity)), most);
  }
  return reduce_max(most);
}

template <bool kWeighted, class T>
TANDEM_INLINE SoftmaxSums softmax_sums(const T* logits, std::int64_t count, float factor) {
  SoftmaxSums sums{.maximum = row_maximum(logits, count, factor)};
  F32x16 sum = zero(), weighted = zero();
  for (std::int64_t i = 0; i < count; i += kLanes) {
    const int n = lanes(count - i);
    const F32x16 z = load(logits + i, n) * set(factor) - set(sums.maximum);
    const F32x16 e = select(first(n), exp(z), zero());
    sum = sum + e;
    // A weight of zero has no part in the entropy, even of a logit of minus infinity.
    if (kWeighted) weighted = select(less(zero(), e), fma(e, z, weighted), weighted);
  }
  sums.sum = reduce_add(sum);
  if (kWeighted) sums.weighted = reduce_add(weighted);
  return sums;
}

}  // namespace tandem::kernels::TANDEM_CPU_ISA
