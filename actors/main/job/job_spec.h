// A job as the program uses it: the job file (docs/job-file.md) after parsing, with every default
// filled in, every range and cross-field rule checked, and every path absolute. Field names are key
// names. Not responsible for parsing (load_job.h), the keys' documentation (job_table.h) or
// printing (print_job.h). Member initialisers are the defaults; a key that has none is required.
// JS-1  A JobSpec that load_job or parse_job returned satisfies every rule of job_rules.h.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/main/job/job_values.h"
#include "actors/main/job/rollout_spec.h"

namespace tandem::cli {

struct ModelSpec {
  std::filesystem::path path;  // an HF directory
  ModelInit init = ModelInit::kPretrained;
  ModelDtype dtype = ModelDtype::kFloat32;
  bool batch_invariant = true;
};

struct DataSpec {
  std::vector<std::filesystem::path> train_files;
  std::vector<std::filesystem::path> val_files;  // empty: no evaluation
  std::string prompt_key = "prompt";
  std::string answer_key = "answer";
  std::string completion_key = "completion";
  std::string data_source_key = "data_source";
  ChatName chat_template = ChatName::kAuto;
  bool enable_thinking = true;
  std::string chat_date = "26 Jul 2024";
  std::int64_t max_prompt_length = 64;    // tokens
  std::int64_t max_response_length = 64;  // tokens
  std::int64_t train_batch_size = 64;     // groups per step (B)
  bool shuffle = true;
};

struct UntilSpec {
  WarmStartMetric metric = WarmStartMetric::kSampleAccuracy;
  double value = 0;
};

struct WarmStartSpec {
  std::vector<std::filesystem::path> train_files;
  double lr = 4.0e-3;
  std::int64_t batch_size = 128;  // completions per step
  std::int64_t max_steps = 400;
  std::int64_t eval_freq = 10;     // steps between measurements of `until`
  std::optional<UntilSpec> until;  // absent: all max_steps are taken
};

struct RewardLimitsSpec {  // of the program; null: none
  std::optional<std::int64_t> open_files = 1024;
  std::optional<std::int64_t> file_size_megabytes = 4096;
  std::optional<double> cpu_seconds_per_line = 600;
  std::optional<std::int64_t> memory_megabytes = 16384;
};

struct RewardSpec {
  std::int64_t replicas = 1;
  RewardType type = RewardType::kExact;
  std::optional<std::string> pattern;               // set exactly when type is regex
  std::optional<std::vector<std::string>> command;  // argv; set exactly when type is command
  double timeout_s = 10;
  std::int64_t retries = 2;
  std::map<std::string, std::string> env;  // beside the few variables of ours that it sees
  RewardLimitsSpec limits;
};

struct OptimizerSpec {  // AdamW
  double lr = 1.0e-3;
  LrScheduler lr_scheduler_type = LrScheduler::kLinear;
  std::int64_t lr_warmup_steps = 5;
  double min_lr_ratio = 0.1;
  std::array<double, 2> betas{0.9, 0.95};
  double eps = 1.0e-8;
  double weight_decay = 0.0;
  double grad_clip = 1.0;  // global norm; 0: off
};

struct LearnerSpec {
  std::int64_t ranks = 1;
  std::int64_t total_training_steps = 1500;
  std::optional<std::int64_t> ppo_mini_batch_size;  // groups; null: the whole batch
  std::int64_t ppo_epochs = 1;
  std::int64_t save_freq = 100;       // steps; 0: only at the end
  std::int64_t test_freq = 50;        // steps; 0: only before and after
  std::int64_t max_token_len = 8192;  // tokens packed into one forward
  bool enable_gradient_checkpointing = false;
  std::int64_t max_nonfinite_steps = 5;  // skipped in a row
  ResumeMode resume_mode = ResumeMode::kAuto;
  std::int64_t max_ckpt_to_keep = 2;
  OptimizerSpec optimizer;
};

struct FilterGroupsSpec {
  bool enable = false;
  std::int64_t max_num_gen_batches = 10;
};

struct OverlongBufferSpec {
  std::int64_t len = 0;  // tokens; 0: off
  double penalty_factor = 0.0;
};

struct KlCtrlSpec {
  double kl_coef = 0.001;
};

struct AlgorithmSpec {
  AdvEstimator adv_estimator = AdvEstimator::kGrpo;
  bool norm_adv_by_std_in_grpo = true;
  LossMode loss_mode = LossMode::kVanilla;
  LossAggMode loss_agg_mode = LossAggMode::kTokenMean;
  double clip_ratio_low = 0.2;
  double clip_ratio_high = 0.28;
  std::optional<double> clip_ratio_c;  // dual clip; null: off
  bool bypass_mode = true;
  std::optional<RolloutIs> rollout_is;  // null when bypass_mode
  double rollout_is_threshold = 2.0;
  double entropy_coeff = 0.0;
  bool use_kl_loss = false;
  double kl_loss_coef = 0.0;
  bool use_kl_in_reward = false;
  KlPenalty kl_penalty = KlPenalty::kKl;
  bool mask_truncated_completions = false;
  KlCtrlSpec kl_ctrl;
  FilterGroupsSpec filter_groups;
  OverlongBufferSpec overlong_buffer;
};

struct AsyncSpec {
  std::int64_t max_staleness = 2;         // K, policy versions
  std::optional<std::int64_t> lookahead;  // L; null: the default, see lookahead() below
  Schedule schedule = Schedule::kBudget;
  bool partial_rollout = true;
  KvOnUpdate kv_on_update = KvOnUpdate::kKeep;
  std::int64_t trigger_parameter_sync_step = 1;  // m, steps per publication
  std::optional<std::int64_t>
      max_concurrent_rollouts;  // trajectories per rollout actor; null: engine's
};

struct WeightBroadcastSpec {
  BroadcastType type = BroadcastType::kAuto;
  double timeout_s = 30;
  std::int64_t bucket_megabytes = 16;
};

struct RolloutPoolSpec {
  double cpus_per_actor = 0.5;         // reserved
  std::int64_t threads_per_actor = 1;  // used
  double gpus_per_actor = 0;           // a share of one, or whole ones; 0: it runs on the CPU
  PoolStrategy strategy = PoolStrategy::kPack;
};

struct LearnerPoolSpec {
  double cpus_per_actor = 0.5;  // per rank, as the others
  std::int64_t threads_per_actor = 1;
  double gpus_per_actor = 0;
  PoolStrategy strategy = PoolStrategy::kPack;
};

struct RewardPoolSpec {
  double cpus_per_actor = 0.1;
};

struct PoolsSpec {
  RolloutPoolSpec rollout;
  LearnerPoolSpec learner;
  RewardPoolSpec reward;
};

struct JobSpec {
  std::string name;
  std::int64_t seed = 17;
  bool save_on_cancel = true;
  bool tensorboard = true;
  ModelSpec model;
  DataSpec data;
  std::optional<WarmStartSpec> warm_start;  // absent: RL starts from the model as it is
  RolloutSpec rollout;
  EvalSpec eval;
  RewardSpec reward;
  LearnerSpec learner;
  AlgorithmSpec algorithm;
  AsyncSpec async;
  WeightBroadcastSpec weight_broadcast;
  PoolsSpec pools;
};

std::int64_t updates_per_batch(const JobSpec& job);  // optimizer steps
// L: the given lookahead, or the default of scheduler/fleet/staleness.h (K up to 2, K-1 up to 4,
// K-2 above).
std::int64_t lookahead(const AsyncSpec& async);

}  // namespace tandem::cli
