// The sums of one row of logits. log_prob and sample share them, so that both have the same bits
// (LP-1).
//
// Two passes: the maximum first, then the sums about it. Lane l takes the tokens l, l + 16, …, and
// the lanes are reduced by halves (reduce_add). The end of a row is computed in masked lanes and
// not by another loop, so the tree depends on the row's length alone.
#pragma once

#include "kernels/cpu/exponential.h"

namespace tandem::kernels::TANDEM_CPU_ISA {

struct SoftmaxSums {
  float maximum = 0;   // of z = logits * factor, with factor = 1 / temperature
  float sum = 0;       // of e = exp(z - maximum)
  float weighted = 0;  // of e * (z - maximum), if asked for
};

// NaN is passed over: max gives its second operand, the maximum so far, where the logit is NaN.
template <class T>
TANDEM_INLINE float row_maximum(const T* logits, std::int64_t count, float factor) {
  F32x16 most = set(-kInfinity);
  for (std::int64_t i = 0; i < count; i += kLanes) {
    const int n = lanes(count - i);
    most = max(select(first(n), load(logits + i, n) * set(factor), set(-kInfinity)), most);
  }
  return reduce_max(most);
}

// kWeighted: `weighted`, for the entropy, is wanted too. The other sums have the same bits either
// way.
template <bool kWeighted, class T>
TANDEM_INLINE SoftmaxSums softmax_sums(const T* logits, std::int64_t count, float factor) {
  SoftmaxSums sums{.maximum = row_maximum(logits, count, factor)};
  F32x16 sum = zero(), weighted = zero();
  for (std::int64_t i = 0; i < count; i += kLanes) {
    const int n = lanes(count - i);
    const F32x16 z = load(logits + i, n) * set(factor) - set(sums.maximum);
    const F32x16 e = select(first(n), exp(z), zero());
    sum = sum + e;
    // A token of weight zero adds nothing to the entropy. Without the test a logit of minus
    // infinity would add 0 * -infinity, which is NaN.
    if (kWeighted) weighted = select(less(zero(), e), fma(e, z, weighted), weighted);
  }
  sums.sum = reduce_add(sum);
  if (kWeighted) sums.weighted = reduce_add(weighted);
  return sums;
}

}  // namespace tandem::kernels::TANDEM_CPU_ISA
