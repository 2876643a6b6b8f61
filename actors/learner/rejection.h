// Rejects tokens whose probability under the policy that is trained is too far from that under the
// policy that generated them (rejection sampling; masked importance sampling). A rejected token's
// importance weight is 0, so that it has no policy gradient. It stays in the denominators of the
// loss and keeps its KL and entropy terms, as in TRL's sequence_mask and prime-rl's token mask;
// verl takes it out of the denominators too. Pure.
//
// b is a token's log-probability under the behaviour policy and p that under the proximal policy,
// or under the current one with bypass_mode, where the proximal policy is the behaviour policy (as
// in verl's bypass mode). Sums, means and maxima are over the tokens of a sequence whose weight is
// not 0. With l_t = p_t - b_t and c_t = l_t clamped to +-kLogRatioMax:
//
//   token_k1     r = exp(l_t)           of the token alone
//   seq_sum_k1   r = exp(sum_t l_t)     of all tokens of its sequence
//   seq_mean_k1  r = exp(mean_t l_t)    likewise
//   *_k2         d_t = c_t² / 2         the token's, or the sum, mean or maximum of the sequence's
//   *_k3         d_t = exp(c_t) - 1 - c_t    likewise
//
// A token is taken where lower <= r <= upper, or d <= upper, by every criterion. The exponents of r
// are clamped to +-kLogRatioMax. A veto comes besides: one token with exp(l_t) below its threshold
// rejects the whole sequence. A NaN is never taken.
//
// verl's k1 since 0.7.1 is of 1 / r: its bounds are these reversed (actors/translate/verl.cc).
// Sources: verl's trainer/ppo/rollout_corr_helper.py, 0.6.1 for the veto and 0.9.1 for k2 and k3;
// TRL's vllm_importance_sampling_mode; "When Speed Kills Stability", Liu, Li et al., 2025.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "actors/learner/learner_config.h"

namespace tandem::learner {

// Log-probabilities and weights of M items, which sequence_begin cuts into sequences.
struct RejectionInput {
  std::span<const float> policy;     // [M] p
  std::span<const float> behaviour;  // [M] b
  std::span<const float> weight;     // [M] of the loss: 0 marks items that do not count
  std::span<const std::int32_t> sequence_begin;
};

struct RejectionCriterion {
  RejectionForm form = RejectionForm::kToken;
  double lower = 0;  // unused by divergences
  double upper = 0;
};
// rollout_rs, then those of rollout_rs_also; empty without them.
std::vector<RejectionCriterion> rejection_criteria(const AlgorithmConfig& config);

// Items that count, and sequences that have such an item.
struct Rejected {
  std::size_t tokens = 0;        // by a criterion
  std::size_t sequences = 0;     // with a token of these
  std::size_t catastrophic = 0;  // tokens below the veto's threshold
  std::size_t vetoed = 0;        // sequences with one of these
  std::size_t sequences_seen = 0;
};

// Sets the importance [M] of each rejected item to 0.
Rejected reject(std::span<const RejectionCriterion> criteria, std::optional<double> veto,
                const RejectionInput& input, std::span<float> importance);

}  // namespace tandem::learner
