// Turns rewards into the weight of each completion token in the loss. Pure functions over a batch
// of B groups with n_g trajectories each; sums run over groups, then trajectories, ascending, in
// double. Advantages are computed over the whole batch, weights over the mini-batch that a group is
// in.
//
//   overlong   r' = r + min(-(T - (response_max - length)) / length * factor, 0)
//              DAPO's soft overlong punishment, arXiv:2503.14476 §3.4 (as in verl)
//   grpo       A = (r - mean_g) / (std + 1e-4)         std with n-1, as torch.std and verl
//              arXiv:2402.03300. std is that of the group's rewards or, with scale_rewards: batch,
//              of all rewards of the batch (TRL's key, arXiv:2508.08221); without std where
//              norm_adv_by_std_in_grpo is off
//   dr_grpo    A = r - mean_g, with the denominators of kSeqMeanTokenSumNorm    arXiv:2503.20783
//   rloo       A = n / (n-1) * (r - mean_g)            arXiv:2402.14740; 0 where n is 1; by
//              (std + 1e-4) as above where scale_rewards is given (AReaL's mean_leave1out with std)
//   reinforce_plus_plus   A = (r - mean) / sqrt(var + 1e-8), mean and var (n-1) over every
//              completion token of the batch    arXiv:2501.03262, verl's masked_whiten without
//              discounting
//   KL         with use_kl_in_reward and p_t the penalty of token t, k = sum_t p_t:
//              reinforce_plus_plus takes from token t the penalties of t and of those behind it,
//              before it whitens; the others have A' = A - c (k - mean_g k), c = n / (n-1) for rloo
//              and 1 else. Under grpo k is not divided by std_g: where the task's rewards differ
//              little, noise of k would become advantages of size 1 (decision 22; verl divides)
//
// Then, over the advantages of the whole batch:
//
//   advantage_batch_normalize   A' = (A - mean) / sqrt(var + 1e-8), mean and var (n-1) over every
//              completion token that counts: verl's masked_whiten, with dr_grpo's A its
//              reinforce_plus_plus_baseline, arXiv:2501.03262
//   advantage_clip              A' = min(max(A, -clip), clip)
//
//   AD-1  A group whose rewards (shaped by length, before KL) are all equal, a zero-variance group,
//         has advantage 0 but for KL: no policy gradient without it. The exception is
//         reinforce_plus_plus and advantage_batch_normalize, whose mean is that of the batch, so
//         that such a group still differs from it.
//   AD-2  Every completion token of a mini-batch has its weight, whatever its advantage: KL,
//         entropy and the denominators are of all of them, as in verl's agg_loss (core_algos.py).
//   AD-3  Truncated completions are the exception where mask_truncated_completions is set (TRL):
//         they weigh nothing and are in no denominator, and reinforce_plus_plus whitens without
//         them. Their rewards stay in their group's mean.
//
// The loss of a mini-batch is sum_t weight_t * l_t over completion tokens; N_t counts those that
// weigh, N_s the trajectories that do, T_i the tokens of trajectory i:
//   token-mean               1 / N_t
//   seq-mean-token-sum       1 / N_s
//   seq-mean-token-mean      1 / (N_s T_i)
//   seq-mean-token-sum-norm  1 / (N_s response_max)
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "actors/learner/learner_config.h"
#include "actors/learner/train_batch.h"

namespace tandem::learner {

// Values for the trajectories of a batch in order: group 0's, group 1's, …
struct BatchAdvantages {
  std::vector<float> advantage;     // [sum n_g]; the mean over its tokens where these differ
  std::vector<float> of_token;      // [sum T_i] where they differ (reinforce_plus_plus with KL)
  std::vector<float> token_weight;  // [sum n_g] of each of its completion tokens
  // [B] whether the group's tokens may have a gradient: that of the policy loss, or that of a KL or
  // entropy term. False saves the group's backward pass.
  std::vector<bool> learns;
  // [mini-batches] whether any token of the mini-batch may have a gradient: false where every
  // advantage is 0 and the loss has no KL or entropy term.
  std::vector<bool> teaches;
  std::uint64_t zero_variance = 0;  // groups
  std::uint64_t tokens = 0;         // completion tokens of the batch
};

// The second term of `overlong` above; never positive.
double overlong_penalty(const OverlongBuffer& buffer, std::int64_t response_length_max,
                        std::int64_t completion_tokens);

// `penalties` [sum T_i] are the p_t of `KL` above. Empty: the reward has no KL term.
BatchAdvantages compute_advantages(const AlgorithmConfig& config, const BatchShape& shape,
                                   const TrainBatch& batch, std::span<const float> penalties = {});

}  // namespace tandem::learner
