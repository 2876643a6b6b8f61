// Policy-gradient losses, elementwise over T tokens of S sequences: the loss, its gradient, and
// statistics for the log.
//
//   c, o, b, r  log-probability by the current, the proximal ("old"), the behaviour and the
//               reference policy
//   A, H        advantage, entropy
//   w           weight: the loss mask times the aggregation's normaliser; loss = sum_t w_t * l_t
//   i           importance weight min(exp(o - b), threshold), a constant of the gradient
//
//   l = i * policy + kl_coef * kl - entropy_coef * H
//   kl       = the estimate of KlEstimate from d = c - r; its gradient is that of the estimate, and
//              0 where kLowVarKl is at its bound
//   ratio    = exp(c - o)
//   clipped  = min(max(ratio, 1 - clip_low), 1 + clip_high)
//
//   kVanilla  policy = max(-A * ratio, -A * clipped); if A < 0 and clip_dual is given, at most
//             -A * clip_dual
//   kGspo     as kVanilla without dual clip, with the sequence's ratio exp(mean_t (c - o)) over its
//             tokens of non-zero weight. Each token carries the gradient of its own share
//             (GSPO-token, which is GSPO where the weights are equal).
//   kCispo    policy = -A * clipped * c, with the clipped ratio as a constant
//
// Sources: PPO, arXiv:1707.06347. Dual clip, arXiv:1912.09729. Two clip bounds: DAPO,
// arXiv:2503.14476. GSPO, arXiv:2507.18071. CISPO, arXiv:2506.13585. Decoupled PPO (o recomputed, i
// against the behaviour policy): AReaL, arXiv:2505.24298. The estimators k1 and k3 of KL: Schulman,
// "Approximating KL divergence", 2020.
//
// Log-ratios are clamped to +-kLogRatioMax before exp. A token with w = 0 gets zero gradients and
// enters no statistic, whatever its other operands hold, NaN included. All operands are f32.
// Results have the same bits on every device.
#pragma once

#include <cstdint>

#include "kernels/operand.h"
#include "runtime/base/enum_names.h"

namespace tandem::kernels {

inline constexpr float kLogRatioMax = 20.0f;

enum class LossMode : std::uint8_t { kVanilla, kGspo, kCispo };
constexpr auto enum_names(LossMode) {
  using enum LossMode;
  return enum_name_rows<LossMode>({{kVanilla, "vanilla"}, {kGspo, "gspo"}, {kCispo, "cispo"}});
}

// Estimators of the KL divergence of one token, with d = its log-probability under the policy minus
// that under the reference: d, |d|, d^2 / 2, and min(exp(-d) + d - 1, kKlMax). Schulman,
// "Approximating KL divergence", 2020 (k1, |k1|, k2, k3). verl's kl_penalty has the same estimators
// and the same bound.
enum class KlEstimate : std::uint8_t { kKl, kAbs, kMse, kLowVarKl };
constexpr auto enum_names(KlEstimate) {
  using enum KlEstimate;
  return enum_name_rows<KlEstimate>({{kKl, "kl"},
                                     {kAbs, "abs"},
                                     {kMse, "mse"},
                                     {kLowVarKl, "low_var_kl"},
                                     {kKl, "k1"},
                                     {kMse, "k2"},
                                     {kLowVarKl, "k3"}});
}
inline constexpr float kKlMax = 10.0f;

// Sums over tokens with w != 0, in double, tokens ascending.
struct PolicyLossStats {
  double loss = 0;          // sum w * l
  double tokens = 0;        // number of tokens
  double clipped = 0;       // number of tokens whose gradient the clip removed or (kCispo) bounded
  double approx_kl_k1 = 0;  // sum (o - c)
  double approx_kl_k3 = 0;  // sum exp(c - o) - (c - o) - 1
  double reference_kl = 0;  // sum kl; 0 without reference
  double entropy = 0;       // sum H; 0 without entropy
  double dual_clipped = 0;  // number of tokens in `clipped` that the dual clip bounded
  double clipped_low = 0;   // number of tokens in `clipped` whose ratio is below the lower bound
  double ratio_max = 0;     // largest exp(c - o) of a token
};

struct PolicyLoss {
  LossMode mode = LossMode::kVanilla;
  float clip_low = 0.2f;
  float clip_high = 0.2f;
  float clip_dual = 0;  // bound of the dual clip, > 1; 0: off
  float kl_coef = 0;
  KlEstimate kl_estimate = KlEstimate::kLowVarKl;
  float entropy_coef = 0;
  TensorView current;         // [T]
  TensorView proximal;        // [T] may be the behaviour policy's log-probabilities (bypass mode)
  TensorView advantage;       // [T]
  TensorView weight;          // [T]
  TensorView importance;      // [T] i, or empty for ones
  TensorView reference;       // [T] r, or empty: then kl_coef is 0
  TensorView entropy;         // [T] H, or empty: then entropy_coef is 0
  TensorView sequence_begin;  // [S + 1] i32: tokens of sequence s are begin[s] … begin[s+1] - 1,
                              // all tokens in order; needed by kGspo, else may be empty
  TensorView dlog_prob;       // [T] written: d loss / d current
  TensorView dentropy;        // [T] written: d loss / d H; or empty
  TensorView loss;            // [T] written: w * l of each token; or empty
  // Accumulated (+=; ratio_max by max), in the device's memory.
  PolicyLossStats* stats = nullptr;
};

enum class ImportanceLevel : std::uint8_t { kToken, kSequence };
constexpr auto enum_names(ImportanceLevel) {
  using enum ImportanceLevel;
  return enum_name_rows<ImportanceLevel>({{kToken, "token"}, {kSequence, "sequence"}});
}

// Truncated importance weights (Ionides, 2008; TIS in RL: Yao et al., 2025):
//   kToken     i_t = min(exp(o_t - b_t), threshold)
//   kSequence  i_t = min(exp(sum_t (o_t - b_t)), threshold), over tokens of non-zero weight
struct ImportanceWeights {
  ImportanceLevel level = ImportanceLevel::kToken;
  float threshold = 2;
  TensorView proximal;        // [T]
  TensorView behaviour;       // [T]
  TensorView weight;          // [T] the loss weight: zero marks tokens that do not count
  TensorView sequence_begin;  // [S + 1] i32; needed by kSequence, else may be empty
  TensorView importance;      // [T] written; 1 where weight is 0
};

void policy_loss(const Stream& stream, const PolicyLoss& op);
void importance_weights(const Stream& stream, const ImportanceWeights& op);

}  // namespace tandem::kernels
