// What the learner is told: the keys `algorithm.*`, `learner.*` and `warm_start.*` of the job file,
// parsed and checked by actors/main. Plain values; member initialisers are the documented defaults.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>

#include "kernels/ops/matmul.h"
#include "kernels/ops/policy_loss.h"
#include "runtime/base/clock.h"

namespace tandem::actors {

enum class AdvantageEstimator : std::uint8_t { kGrpo, kDrGrpo, kRloo, kReinforcePlusPlus };
enum class LossAggregation : std::uint8_t {
  kTokenMean,
  kSeqMeanTokenSum,
  kSeqMeanTokenMean,
  kSeqMeanTokenSumNorm,
};

// Estimators of the KL divergence of one token, with d = log p of the proximal policy - log p of
// the reference: d, |d|, d^2 / 2, and min(exp(-d) + d - 1, 10). Schulman, "Approximating KL
// divergence", 2020 (k1, |k1|, k2, k3); verl's kl_penalty, whose bound of 10 this is.
enum class KlPenalty : std::uint8_t { kKl, kAbs, kMse, kLowVarKl };

// Each trajectory longer than response_max - length tokens loses up to `penalty_factor` of reward.
struct OverlongBuffer {
  std::int32_t length = 0;  // tokens; 0: off
  double penalty_factor = 0;
};

struct AlgorithmConfig {
  AdvantageEstimator estimator = AdvantageEstimator::kGrpo;
  bool norm_adv_by_std_in_grpo = true;
  kernels::LossMode loss_mode = kernels::LossMode::kVanilla;
  LossAggregation loss_aggregation = LossAggregation::kTokenMean;
  double clip_ratio_low = 0.2;
  double clip_ratio_high = 0.28;
  std::optional<double> clip_ratio_c;  // dual clip; none: off
  bool bypass_mode = true;             // the proximal policy is the behaviour policy
  std::optional<kernels::ImportanceLevel> rollout_is;  // none when bypass_mode
  double rollout_is_threshold = 2.0;
  double entropy_coeff = 0;
  bool use_kl_loss = false;  // against the weights at the start of RL
  double kl_loss_coef = 0;
  bool use_kl_in_reward = false;  // against the same weights
  KlPenalty kl_penalty = KlPenalty::kKl;
  double kl_in_reward_coef = 0;
  bool mask_truncated_completions = false;
  std::int64_t mini_batch_groups = 0;  // of one optimizer step; 0: the whole batch
  std::int64_t epochs = 1;             // times that a batch is gone through
  OverlongBuffer overlong_buffer;
  std::int32_t response_length_max = 64;  // data.max_response_length
  float temperature = 1.0f;               // rollout.temperature: log-probabilities are tempered

  bool needs_reference() const { return use_kl_loss || use_kl_in_reward; }
  // A KL or entropy term, which gives tokens a gradient whose advantage is 0.
  bool has_loss_on_every_token() const {
    return entropy_coeff != 0 || (use_kl_loss && kl_loss_coef != 0);
  }
};

enum class LrSchedule : std::uint8_t { kConstant, kLinear, kCosine };

struct OptimizerConfig {  // AdamW
  double lr = 1.0e-3;
  LrSchedule schedule = LrSchedule::kLinear;
  std::int64_t warmup_steps = 5;
  double min_lr_ratio = 0.1;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1.0e-8;
  double weight_decay = 0;  // of every parameter
  double grad_clip = 1.0;   // of the global norm; 0: off
};

enum class ResumeMode : std::uint8_t {
  kAuto,     // from the newest complete checkpoint, if there is one
  kDisable,  // always from the start
  kPath,     // from exactly CheckpointConfig::resume_path
};

struct CheckpointConfig {
  std::filesystem::path directory;  // RUN_DIR/checkpoints; made when first needed
  std::int64_t keep_max = 2;        // newest ones kept; at least 1
  ResumeMode resume = ResumeMode::kAuto;
  std::filesystem::path resume_path;  // of one checkpoint; only with kPath
};

enum class WarmStartMetric : std::uint8_t {
  kSampleAccuracy,  // expected share of sampled completions (temperature 1) that equal the record's
  kLoss,            // mean -log p of a completion token; stops at or below the value
};

struct WarmStartConfig {
  double lr = 4.0e-3;
  std::int64_t batch_size = 128;  // records per step
  std::int64_t steps_max = 400;
  std::int64_t eval_freq = 10;  // steps between measurements
  struct Until {
    WarmStartMetric metric = WarmStartMetric::kSampleAccuracy;
    double value = 0;
  };
  std::optional<Until> until;  // none: all steps_max are taken
};

struct TrainerConfig {
  std::uint64_t seed = 0;
  AlgorithmConfig algorithm;
  OptimizerConfig optimizer;
  std::int64_t steps_total = 0;  // learner.total_training_steps, the schedule's end
  // learner.max_nonfinite_steps: so many in a row are skipped, the next one ends the job.
  std::int64_t nonfinite_steps_max = 5;
  std::int64_t rows_max = 8192;      // learner.max_token_len: token rows of one forward
  std::int64_t positions_max = 128;  // of one sequence: max_prompt_length + max_response_length
  // Keep one layer's activations and compute the others again in backward: the same gradients to
  // the bit, for a forward pass more.
  bool enable_gradient_checkpointing = false;
  // What a GPU's products promise of a row among others (kernels/ops/matmul.h).
  kernels::Rows products = kernels::Rows::kInvariant;
  std::optional<WarmStartConfig> warm_start;
  CheckpointConfig checkpoints;
  // So many versions before the newest one stay in memory and go into each checkpoint: K under a
  // fixed lag, whose slots want them even after every process of the run has died.
  std::int64_t older_versions = 0;
  // Versions of the weights that lie published in the GPU's memory, beside what the trainer has.
  std::int64_t versions_on_device = 0;
  std::size_t broadcast_bytes = 0;  // of the GPU's memory, for broadcasts of the weights
  // How long a rank waits for the others in one collective operation of a step.
  Duration collective_timeout = std::chrono::seconds(60);
};

}  // namespace tandem::actors
