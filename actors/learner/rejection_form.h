// The criteria by which tokens are rejected, named as in verl's rollout_correction.rollout_rs. A
// form is an estimate of how far a token's two probabilities are apart, and how many tokens share
// one verdict. The formulas are in rejection.h. `token`, `sequence` and `geometric` are the names
// that verl had first for token_k1, seq_sum_k1 and seq_mean_k1.
#pragma once

#include <cstdint>

#include "runtime/base/enum_names.h"

namespace tandem::learner {

enum class RejectionForm : std::uint8_t {
  kToken,
  kSequence,
  kGeometric,
  kTokenK2,
  kTokenK3,
  kSeqSumK2,
  kSeqSumK3,
  kSeqMeanK2,
  kSeqMeanK3,
  kSeqMaxK2,
  kSeqMaxK3,
};
constexpr auto enum_names(RejectionForm) {
  using enum RejectionForm;
  return enum_name_rows<RejectionForm>({{kToken, "token"},
                                        {kSequence, "sequence"},
                                        {kGeometric, "geometric"},
                                        {kToken, "token_k1"},
                                        {kTokenK2, "token_k2"},
                                        {kTokenK3, "token_k3"},
                                        {kSequence, "seq_sum_k1"},
                                        {kSeqSumK2, "seq_sum_k2"},
                                        {kSeqSumK3, "seq_sum_k3"},
                                        {kGeometric, "seq_mean_k1"},
                                        {kSeqMeanK2, "seq_mean_k2"},
                                        {kSeqMeanK3, "seq_mean_k3"},
                                        {kSeqMaxK2, "seq_max_k2"},
                                        {kSeqMaxK3, "seq_max_k3"}});
}

// Whether the form bounds a ratio, from above and below; the others bound a divergence, which is
// never negative, from above.
constexpr bool bounds_ratio(RejectionForm form) {
  using enum RejectionForm;
  return form == kToken || form == kSequence || form == kGeometric;
}

}  // namespace tandem::learner
