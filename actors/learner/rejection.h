// Rejects tokens whose probability under the policy that is trained is too far from that under the
// policy that generated them (rejection sampling; masked importance sampling). A rejected token's
// importance weight is 0, so that it has no policy gradient. It stays in the denominators of the
// loss and keeps its KL and entropy terms, as in TRL's sequence_mask and prime-rl's token mask;
// verl takes it out of the denominators too. Pure.
//
// b is a token's log-probability under the behaviour policy and p that under the proximal policy,
// or under the current one with bypass_mode, where the proximal policy is the behaviour policy (as
// in verl's bypass mode). Sums and means are over the tokens of a sequence whose weight is not 0.
//
//   token      r = exp(p_t - b_t)            of the token alone
//   sequence   r = exp(sum_t (p_t - b_t))    of all tokens of its sequence
//   geometric  r = exp(mean_t (p_t - b_t))   likewise
//
// A token is taken where lower <= r <= upper. Log-ratios are clamped to +-kLogRatioMax before exp.
// Sources: verl's rollout_correction.rollout_rs (token_k1, seq_sum_k1, seq_mean_k1 there); TRL's
// vllm_importance_sampling_mode; "When Speed Kills Stability", Liu, Li et al., 2025.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "actors/learner/learner_config.h"

namespace tandem::learner {

// Log-probabilities and weights of M items, which sequence_begin cuts into sequences.
struct RejectionInput {
  std::span<const float> policy;     // [M] p
  std::span<const float> behaviour;  // [M] b
  std::span<const float> weight;     // [M] of the loss: 0 marks items that do not count
  std::span<const std::int32_t> sequence_begin;
};

// Sets the importance [M] of each rejected item to 0. Returns how many items were rejected, of
// those that count. `config` has rollout_rs.
std::size_t reject(const AlgorithmConfig& config, const RejectionInput& input,
                   std::span<float> importance);

}  // namespace tandem::learner
