// The configuration of the learner: the keys `algorithm.*`, `learner.*` and `warm_start.*` of the
// job file, parsed and checked by actors/main. Plain values. AlgorithmConfig, OptimizerConfig and
// WarmStartConfig are sections of the job file: a field has its key's name, and its initialiser is
// the key's default. docs/job-file.md describes each key to users.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/learner/rejection_form.h"
#include "kernels/ops/matmul.h"
#include "kernels/ops/policy_loss.h"
#include "runtime/base/clock.h"
#include "runtime/base/enum_names.h"
#include "runtime/base/ids.h"

namespace tandem::learner {

// Formulas are in advantage.h.
enum class AdvantageEstimator : std::uint8_t { kGrpo, kDrGrpo, kRloo, kReinforcePlusPlus };
constexpr auto enum_names(AdvantageEstimator) {
  using enum AdvantageEstimator;
  return enum_name_rows<AdvantageEstimator>({{kGrpo, "grpo"},
                                             {kDrGrpo, "dr_grpo"},
                                             {kRloo, "rloo"},
                                             {kReinforcePlusPlus, "reinforce_plus_plus"}});
}

// The denominators of the loss; formulas are in advantage.h.
enum class LossAggregation : std::uint8_t {
  kTokenMean,
  kSeqMeanTokenSum,
  kSeqMeanTokenMean,
  kSeqMeanTokenSumNorm,
};
constexpr auto enum_names(LossAggregation) {
  using enum LossAggregation;
  return enum_name_rows<LossAggregation>({{kTokenMean, "token-mean"},
                                          {kSeqMeanTokenSum, "seq-mean-token-sum"},
                                          {kSeqMeanTokenMean, "seq-mean-token-mean"},
                                          {kSeqMeanTokenSumNorm, "seq-mean-token-sum-norm"}});
}

using KlPenalty = kernels::KlEstimate;

// The standard deviation by which group-relative advantages are divided (advantage.h).
enum class ScaleRewards : std::uint8_t { kGroup, kBatch, kNone };
constexpr auto enum_names(ScaleRewards) {
  using enum ScaleRewards;
  return enum_name_rows<ScaleRewards>({{kGroup, "group"}, {kBatch, "batch"}, {kNone, "none"}});
}

// What filter_groups looks at: the rewards, or which completions succeed.
enum class FilterMetric : std::uint8_t { kScore, kAcc };
constexpr auto enum_names(FilterMetric) {
  using enum FilterMetric;
  return enum_name_rows<FilterMetric>({{kScore, "score"}, {kAcc, "acc"}});
}

// Dynamic sampling: groups that teach nothing are discarded and replaced, until so many batches
// have been generated for one step. The exchange does it (actors/exchange/group_filter.h).
struct FilterGroups {
  bool enable = false;
  FilterMetric metric = FilterMetric::kScore;
  std::optional<double> lower_bound, upper_bound;  // of a group's mean; both are excluded
  std::int64_t max_num_gen_batches = 10;
};

// A trajectory longer than response_length_max - len tokens loses reward in proportion to the
// excess, and `penalty_factor` at response_length_max.
struct OverlongBuffer {
  std::int64_t len = 0;  // tokens; 0: off
  double penalty_factor = 0;
};

// The weight of the divergence that use_kl_in_reward subtracts from rewards.
struct KlCtrl {
  double kl_coef = 0.001;
};

// algorithm.*: how rewards become advantages, and the terms of the loss.
struct AlgorithmConfig {
  AdvantageEstimator adv_estimator = AdvantageEstimator::kGrpo;
  bool norm_adv_by_std_in_grpo = true;
  std::optional<ScaleRewards> scale_rewards;  // empty: as norm_adv_by_std_in_grpo says
  bool advantage_batch_normalize = false;
  std::optional<double> advantage_clip;
  kernels::LossMode loss_mode = kernels::LossMode::kVanilla;
  LossAggregation loss_agg_mode = LossAggregation::kTokenMean;
  // The ratio of current to proximal probability is clipped to [1 - low, 1 + high].
  double clip_ratio_low = 0.2;
  double clip_ratio_high = 0.28;
  std::optional<double> clip_ratio_c = 3;  // dual clip of the vanilla loss; empty: off
  // True: the proximal policy is the behaviour policy, so its log-probabilities come with the
  // batch. False: the proximal policy is the policy before the batch's first update (objective.h).
  bool bypass_mode = true;
  // Importance weights of the proximal over the behaviour policy. Always empty with bypass_mode.
  std::optional<kernels::ImportanceLevel> rollout_is;
  double rollout_is_threshold = 2.0;
  bool rollout_is_batch_normalize = false;
  std::optional<RejectionForm> rollout_rs;  // empty: no token is rejected
  double rollout_rs_threshold = 2.0;
  std::optional<double> rollout_rs_threshold_lower;  // empty: 1 / rollout_rs_threshold
  std::map<std::string, double> rollout_rs_also;     // more forms, by name, with their thresholds
  std::optional<double> rollout_token_veto_threshold;
  double entropy_coeff = 0;
  bool use_kl_loss = false;  // the reference is the policy at the start of RL
  double kl_loss_coef = 0;
  KlPenalty kl_loss_type = KlPenalty::kLowVarKl;
  bool use_kl_in_reward = false;  // with the same reference
  KlPenalty kl_penalty = KlPenalty::kKl;
  bool mask_truncated_completions = false;
  KlCtrl kl_ctrl;
  FilterGroups filter_groups;  // for the exchange
  OverlongBuffer overlong_buffer;

  bool needs_reference() const { return use_kl_loss || use_kl_in_reward; }
  // Whether a KL or entropy term gives even tokens with advantage 0 a gradient.
  bool has_loss_on_every_token() const {
    return entropy_coeff != 0 || (use_kl_loss && kl_loss_coef != 0);
  }
};

// The keys of other sections that say how a batch is sampled and divided into updates.
struct BatchShape {
  std::int64_t mini_batch_groups = 0;     // groups of one optimizer step; 0: the whole batch
  std::int64_t epochs = 1;                // how often each batch is trained
  std::int32_t response_length_max = 64;  // data.max_response_length
  float temperature = 1.0f;               // rollout.temperature: log-probabilities are tempered
};

enum class LrSchedule : std::uint8_t { kConstant, kLinear, kCosine };
constexpr auto enum_names(LrSchedule) {
  using enum LrSchedule;
  return enum_name_rows<LrSchedule>(
      {{kConstant, "constant"}, {kLinear, "linear"}, {kCosine, "cosine"}});
}

// learner.optimizer.*: AdamW and the learning rate's schedule (lr_schedule.h). Steps are steps of
// training, one per batch.
struct OptimizerConfig {
  double lr = 1.0e-6;  // for pretrained weights; settle() in job_rules.h has that of random ones
  LrSchedule lr_scheduler_type = LrSchedule::kLinear;
  std::int64_t lr_warmup_steps = 5;
  std::optional<double> lr_warmup_steps_ratio;  // of all steps, in place of lr_warmup_steps
  double min_lr_ratio = 0.1;                    // the fraction of lr at the end of the schedule
  std::array<double, 2> betas{0.9, 0.95};
  double eps = 1.0e-8;
  double weight_decay = 0;  // applies to every parameter; decoupled from the gradient
  double grad_clip = 1.0;   // bounds the global norm; 0: off
};

// Tells where a trainer begins.
enum class ResumeMode : std::uint8_t {
  kAuto,     // at the newest complete checkpoint, if there is one
  kDisable,  // always with the untrained weights
  kPath,     // at CheckpointConfig::resume_path and nowhere else; a job file cannot name it
};
constexpr auto enum_names(ResumeMode) {
  using enum ResumeMode;
  return enum_name_rows<ResumeMode>({{kAuto, "auto"}, {kDisable, "disable"}});
}

// The claim of a learner on the checkpoints of its run (trainer_checkpoint.h, CP-3).
struct CheckpointClaim {
  std::string id;      // of this learner alone; empty: nothing is claimed
  std::string former;  // the claim that this learner found; empty: there was none
};

struct CheckpointConfig {
  std::filesystem::path directory;  // RUN_DIR/checkpoints; made when first needed
  std::int64_t keep_max = 2;        // newest ones kept; at least 1
  std::vector<StepId> keep;         // kept besides, where they are there
  std::vector<StepId> refused;      // damaged: they count for none, and go with the next save
  ResumeMode resume = ResumeMode::kAuto;
  std::filesystem::path resume_path;  // the directory of one checkpoint; only with kPath
  CheckpointClaim claim = {};         // what claim_checkpoints() gave this learner
};

enum class WarmStartMetric : std::uint8_t {
  kSampleAccuracy,  // expected share of sampled completions (temperature 1) that equal the record's
  // Mean -log p of a completion token, in nats; stops at or below it. No job file can name it.
  kLoss,
};
constexpr auto enum_names(WarmStartMetric) {
  using enum WarmStartMetric;
  return enum_name_rows<WarmStartMetric>({{kSampleAccuracy, "sample_accuracy"}});
}

// warm_start.until: the warm start ends once the metric is at least (a loss: at most) this.
struct WarmStartUntil {
  WarmStartMetric metric = WarmStartMetric::kSampleAccuracy;
  double value = 0;
};

// warm_start.*: supervised training on records before RL, by AdamW at a constant rate. Its defaults
// were found robust on small models.
struct WarmStartConfig {
  double lr = 4.0e-3;
  std::int64_t lr_warmup_steps = 50;
  std::array<double, 2> betas{0.9, 0.98};
  double weight_decay = 0.01;
  double grad_clip = 1.0;         // as OptimizerConfig's
  std::int64_t batch_size = 128;  // records per step
  std::int64_t max_steps = 400;
  std::int64_t eval_freq = 10;          // steps between measurements
  std::optional<WarmStartUntil> until;  // empty: all max_steps are taken
};

// All that a Trainer is configured with.
struct TrainerConfig {
  std::uint64_t seed = 0;
  AlgorithmConfig algorithm;
  BatchShape batch;
  OptimizerConfig optimizer;
  std::int64_t steps_total = 0;  // learner.total_training_steps, the schedule's end
  // learner.max_nonfinite_steps: up to so many steps in a row are skipped because their gradient is
  // not finite; one more fails the job.
  std::int64_t nonfinite_steps_max = 5;
  // learner.observe_fraction, of the groups that do not learn.
  double observe_fraction = 1;
  std::int64_t rows_max = 8192;      // learner.max_token_len: token rows of one forward
  std::int64_t positions_max = 128;  // in one sequence: max_prompt_length + max_response_length
  // Keeps the activations of one layer only and computes the others again in backward. The
  // gradients have the same bits; a step costs one more forward pass.
  bool enable_gradient_checkpointing = false;
  // Whether a GPU's products keep a row's bits whatever other rows are computed with it
  // (kernels/ops/matmul.h).
  kernels::Rows products = kernels::Rows::kInvariant;
  std::optional<WarmStartConfig> warm_start;
  CheckpointConfig checkpoints;
  // How many versions before the newest one stay in memory and go into each checkpoint. Under a
  // fixed lag this is K: its slots need these versions even after every process of the run has
  // died.
  std::int64_t older_versions = 0;
  // Published versions in the GPU's memory; this and the next only count in trainer_setup.h.
  std::int64_t versions_on_device = 0;
  std::size_t broadcast_bytes = 0;  // the GPU memory for broadcasts of the weights
  std::int64_t probe_positions = 0;  // the longest probe() (actors/model/probe.h); 0: none
  // How long a rank waits for the others in one collective operation.
  Duration collective_timeout = std::chrono::seconds(60);
};

}  // namespace tandem::learner
