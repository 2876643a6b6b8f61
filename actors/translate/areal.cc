// AReaL's YAML. It normalises twice, rewards first (reward_norm) and advantages then (adv_norm),
// each by the group or by the batch; without a critic the two are one estimator of the job:
//
//   the group's mean, with or without its deviation  grpo
//   the group's mean without the completion itself   rloo
//   the batch's mean and deviation alone             reinforce_plus_plus
//   the group's mean, then the batch's               grpo, whitened over the batch
//
// A batch is train_dataset.batch_size prompts, cut into ppo_n_minibatches updates. The reward is
// code of the training script, so that none comes over.
#include <algorithm>
#include <cmath>

#include "actors/translate/draft.h"
#include "actors/translate/frameworks.h"
#include "actors/translate/shared_keys.h"
#include "actors/translate/shared_rules.h"

namespace tandem::translate {
namespace areal {
namespace {

using nlohmann::json;
using enum Severity;

constexpr std::string_view kGroupSize = "a group is the completions of one prompt";
constexpr std::string_view kEps = "a small number that is added to the deviation";
constexpr std::string_view kUnbiased = "the deviation is the unbiased one";
constexpr std::string_view kCritic =
    "PPO with a critic is not in this version: the baseline is the group's or the batch's mean";

Converted above_a_million_is_off(const json& value) {
  const auto tokens = number_of(value);
  return {tokens && (*tokens > 1e6 || *tokens < 0) ? json(0) : value};
}
Converted seconds_as_minutes(const json& value) {
  const auto seconds = number_of(value);
  if (!seconds || *seconds <= 0) return {};
  return {json(*seconds / 60)};
}
Converted random_weights(const json& value) {
  if (truth_of(value).value_or(false)) return {"random"};
  return {};
}

constexpr Rule kRules[] = {
    same("experiment_name", "name"),
    same("trial_name", "tracking.run_name"),
    same("seed", "seed"),
    same("total_train_epochs", "data.total_epochs"),
    derived("total_train_steps", "learner.total_training_steps"),
    none("total_train_n_seqs", kSame, kLogs),
    derived("tokenizer_path", "model.path"),
    // The model and the optimizer
    derived("actor.path", "model.path"),
    same("actor.init_from_scratch", "model.init", random_weights),
    same("actor.dtype", "model.dtype", dtype),
    same("actor.gradient_checkpointing", "learner.enable_gradient_checkpointing"),
    none("actor.mb_spec.*", kSame, kMicro),
    same("actor.mb_spec.max_tokens_per_mb", "learner.max_token_len"),
    same("actor.optimizer.lr", "learner.optimizer.lr"),
    same("actor.optimizer.weight_decay", "learner.optimizer.weight_decay"),
    derived("actor.optimizer.beta1", "learner.optimizer.betas"),
    derived("actor.optimizer.beta2", "learner.optimizer.betas"),
    same("actor.optimizer.eps", "learner.optimizer.eps"),
    same("actor.optimizer.lr_scheduler_type", "learner.optimizer.lr_scheduler_type"),
    same("actor.optimizer.min_lr_ratio", "learner.optimizer.min_lr_ratio"),
    same("actor.optimizer.warmup_steps_proportion", "learner.optimizer.lr_warmup_steps_ratio"),
    same("actor.optimizer.gradient_clipping", "learner.optimizer.grad_clip"),
    none("actor.optimizer.type", kDiffers, "AdamW in float32 is the only optimizer", "adam|adamw"),
    none("actor.optimizer.*", kSame, kLayout),
    none("actor.use_lora", kDiffers, kAdapters, "false"),
    none("actor.lora_*", kSame, kAdapters),
    // Updates and the loss
    derived("actor.ppo_n_minibatches", "learner.ppo_mini_batch_size"),
    derived("actor.eps_clip", "algorithm.clip_ratio_low"),
    derived("actor.eps_clip_higher", "algorithm.clip_ratio_high"),
    derived("actor.c_clip", "algorithm.clip_ratio_c"),
    derived("actor.importance_sampling_level", "algorithm.loss_mode"),
    derived("actor.use_cispo_loss", "algorithm.loss_mode"),
    none("actor.use_sapo_loss", kDiffers,
         "SAPO is not in this version: the clip per token stands in its place", "false"),
    none("actor.sapo_*", kSame, "settings of SAPO"),
    none("actor.m2_threshold", kDiffers, "M2PO is not in this version"),
    none("actor.enable_icepop", kDiffers,
         "`algorithm.rollout_rs: token` with two thresholds is IcePop", "false"),
    none("actor.icepop_*", kSame, "settings of IcePop"),
    derived("actor.kl_ctl", "algorithm.kl_ctrl.kl_coef"),
    derived("actor.kl_estimator", "algorithm.kl_penalty"),
    derived("actor.use_decoupled_loss", "algorithm.bypass_mode"),
    derived("actor.recompute_logprob", "algorithm.bypass_mode"),
    derived("actor.prox_logp_method", "algorithm.bypass_mode"),
    derived("actor.behav_imp_weight_cap", "algorithm.rollout_rs_threshold"),
    derived("actor.behave_imp_weight_cap", "algorithm.rollout_rs_threshold"),
    none("actor.behave_imp_weight_mode", kDiffers, "weights of tokens beyond the cap are rejected",
         "token_mask"),
    derived("actor.rejection_sampling.metric", "algorithm.rollout_rs"),
    derived("actor.rejection_sampling.action", "algorithm.rollout_rs"),
    derived("actor.rejection_sampling.level", "algorithm.rollout_rs"),
    derived("actor.rejection_sampling.agg", "algorithm.rollout_rs"),
    derived("actor.rejection_sampling.upper", "algorithm.rollout_rs_threshold"),
    derived("actor.rejection_sampling.lower", "algorithm.rollout_rs_threshold_lower"),
    derived("actor.rejection_sampling", "algorithm.rollout_rs"),
    none("actor.discount", kDiffers, "rewards are not discounted", "1"),
    none("actor.gae_lambda", kSame, kCritic),
    derived("actor.adv_norm.mean_level", "algorithm.adv_estimator"),
    derived("actor.adv_norm.mean_leave1out", "algorithm.adv_estimator"),
    derived("actor.adv_norm.std_level", "algorithm.scale_rewards"),
    none("actor.adv_norm.group_size", kSame, kGroupSize),
    none("actor.adv_norm.eps", kSame, kEps),
    none("actor.adv_norm.std_unbiased", kDiffers, kUnbiased, "true"),
    derived("actor.adv_norm", "algorithm.adv_estimator"),
    derived("actor.reward_norm.mean_level", "algorithm.adv_estimator"),
    derived("actor.reward_norm.mean_leave1out", "algorithm.adv_estimator"),
    derived("actor.reward_norm.std_level", "algorithm.scale_rewards"),
    none("actor.reward_norm.group_size", kSame, kGroupSize),
    none("actor.reward_norm.eps", kSame, kEps),
    none("actor.reward_norm.std_unbiased", kDiffers, kUnbiased, "true"),
    derived("actor.reward_norm", "algorithm.adv_estimator"),
    derived("actor.reward_scaling", "reward.scale"),
    derived("actor.reward_bias", "reward.bias"),
    derived("actor.reward_clip", "reward.clip"),
    derived("actor.overlong_reward_penalty", "algorithm.overlong_buffer"),
    derived("actor.overlong_tokens", "algorithm.overlong_buffer.len"),
    derived("actor.overlong_penalty_factor", "algorithm.overlong_buffer.penalty_factor"),
    none(
        "actor.mask_no_eos_with_zero", kDiffers,
        "a truncated completion keeps its reward; `algorithm.mask_truncated_completions` leaves it "
        "out of the loss",
        "false"),
    none("dynamic_bs", kDiffers, "a batch has the same number of prompts", "false"),
    none("actor.temperature", kSame, "`rollout.temperature` is that of engine and learner"),
    none("actor.max_new_tokens", kSame, "`data.max_response_length` is that of the sampling"),
    none("actor.group_size", kSame, "`rollout.n` is the size of a group"),
    none("actor.disable_dropout", kSame, "models of this version have no dropout"),
    none("actor.dynamic_sampling", kDiffers, "`algorithm.filter_groups` replaces groups", "false"),
    none("actor.experiment_name", kSame, kLayout),
    none("actor.trial_name", kSame, kLayout),
    none("actor.attn_impl", kSame, kLayout),
    none("actor.pad_to_maximum", kSame, kLayout),
    none("actor.grad_reduce_dtype", kSame, kLayout),
    none("actor.optimizer_dtype", kSame, kLayout),
    none("actor.weight_update_mode", kSame, kLayout),
    none("actor.fsdp.*", kSame, kLayout),
    none("actor.archon.*", kSame, kLayout),
    none("actor.megatron.*", kSame, kLayout),
    none("actor.offload", kSame, kLayout),
    none("actor.use_kernels", kSame, kLayout),
    none("actor.is_critic", kSame, kLayout),
    none("actor.scheduling_spec", kSame, kLayout),
    none("actor.scheduling_strategy.*", kSame, kLayout),
    none("actor.backend", kSame, kLayout),
    none("actor._version", kSame, kLayout),
    none("actor.admin_api_key", kSame, kLayout),
    none("actor.log_level", kSame, kLayout),
    none("actor.request_timeout", kSame, kLayout),
    none("actor.setup_timeout", kSame, kLayout),
    none("actor.enable_tree_training", kSame, kLayout),
    none("actor.log_agent_stats*", kSame, kLayout),
    none("actor.peft_type", kSame, kLayout),
    none("actor.target_modules", kSame, kLayout),
    none("critic.*", kDiffers, kCritic),
    none("critic", kSame, kCritic),
    none("ref.*", kSame, kLayout),
    none("ref", kSame, kLayout),
    none("teacher.*", kDiffers, "distillation is not in this version"),
    // Sampling
    derived("gconfig.n_samples", "rollout.n"),
    same("gconfig.max_new_tokens", "data.max_response_length"),
    same("gconfig.min_new_tokens", "rollout.min_tokens"),
    none("gconfig.max_tokens", kSame, "prompt and completion have bounds of their own"),
    none("gconfig.greedy", kDiffers, "completions are always sampled", "false"),
    same("gconfig.top_p", "rollout.top_p"),
    same("gconfig.top_k", "rollout.top_k", above_a_million_is_off),
    same("gconfig.temperature", "rollout.temperature"),
    same("gconfig.stop", "rollout.stop"),
    same("gconfig.stop_token_ids", "rollout.stop_token_ids"),
    none("gconfig.frequency_penalty", kDiffers, "a penalty on repetition is not in this version",
         "0"),
    none("gconfig.ignore_eos", kDiffers, "an end token always ends a completion", "false"),
    none("gconfig.skip_special_tokens", kSame, kEngine),
    none("gconfig.lora_name", kSame, kEngine),
    none("gconfig.use_beam_search", kDiffers, "completions are always sampled", "false"),
    derived("eval_gconfig.temperature", "eval.temperature"),
    derived("eval_gconfig.n_samples", "eval.n"),
    same("eval_gconfig.top_p", "eval.top_p"),
    none("eval_gconfig.greedy", kDiffers, "`eval.greedy` and `eval.temperature` say so", "false"),
    none("eval_gconfig.top_k", kDiffers, "`eval.top_k` counts tokens of the vocabulary",
         "100000000|0|-1"),
    none("eval_gconfig.frequency_penalty", kDiffers,
         "a penalty on repetition is not in this version", "0"),
    none("eval_gconfig.stop", kDiffers,
         "a completion of an evaluation ends where one of training does"),
    none("eval_gconfig.stop_token_ids", kDiffers,
         "a completion of an evaluation ends where one of training does", "[]"),
    none("eval_gconfig.*", kSame, "section `eval` says how an evaluation samples"),
    // Asynchrony
    same("rollout.max_head_offpolicyness", "async.max_staleness"),
    none("rollout.max_concurrent_rollouts", kSame,
         "how much is generated at a time follows from the engine's room"),
    none("rollout.consumer_batch_size", kSame, "a batch is `data.train_batch_size` prompts"),
    none("rollout.experiment_name", kSame, kEngine),
    none("rollout.trial_name", kSame, kEngine),
    none("rollout.queue_size", kSame, kEngine),
    none("rollout.enable_rollout_tracing", kSame, kEngine),
    none("rollout.scheduling_spec", kSame, kEngine),
    none("rollout.scheduling_strategy.*", kSame, kEngine),
    none("rollout.fileroot", kSame, kEngine),
    none("rollout.tokenizer_path", kSame, kEngine),
    none("rollout.dump_to_file", kSame, kEngine),
    none("rollout.setup_timeout", kSame, kEngine),
    none("rollout.request_*", kSame, kEngine),
    none("rollout.pause_grace_period", kSame, kEngine),
    none("rollout.backend", kSame, kEngine),
    none("rollout.check_trajectory_format", kSame, kEngine),
    none("rollout.agent.*", kSame, kEngine),
    none("rollout.schedule_policy", kSame, kEngine),
    // The data
    derived("train_dataset.path", "data.train_files"),
    derived("train_dataset.batch_size", "data.train_batch_size"),
    same("train_dataset.shuffle", "data.shuffle"),
    derived("train_dataset.max_length", "data.max_prompt_length"),
    none("train_dataset.type", kSame, "how the data are read"),
    none("train_dataset.pin_memory", kSame, "how the data are read"),
    none("train_dataset.num_workers", kSame, "how the data are read"),
    none("train_dataset.drop_last", kSame, "how the data are read"),
    none("train_dataset.scheduling_spec", kSame, "how the data are read"),
    derived("valid_dataset.path", "data.val_files"),
    none("valid_dataset.*", kSame, "an evaluation is of all prompts at once"),
    none("valid_dataset", kSame, "there is no evaluation"),
    // The run
    same("saver.freq_steps", "learner.save_freq"),
    same("saver.freq_epochs", "learner.save_every_epochs"),
    same("saver.freq_secs", "learner.save_every_minutes", seconds_as_minutes),
    none("saver.*", kSame, kLogs),
    same("evaluator.freq_steps", "learner.test_freq"),
    none("evaluator.*", kSame, "evaluations are counted in steps (`learner.test_freq`)"),
    derived("stats_logger.wandb.mode", "trackers"),
    same("stats_logger.wandb.project", "tracking.project"),
    same("stats_logger.wandb.entity", "tracking.entity"),
    same("stats_logger.wandb.group", "tracking.group"),
    none("stats_logger.*", kSame, kLogs),
    none("recover.*", kSame, "`tandem run --resume RUN` goes on with a run"),
    none("checkpointer.*", kSame, kLogs),
    none("perf_tracer.*", kSame, kLogs),
    none("cluster.*", kSame, kLayout),
    none("scheduler.*", kSame, kLayout),
    none("launcher.*", kSame, kLayout),
    none("allocation_mode", kSame, kLayout),
    none("enable_offload", kSame, kLayout),
    none("async_training", kSame, "`async.max_staleness` says how far"),
    none("sglang.*", kSame, kEngine),
    none("vllm.*", kSame, kEngine),
    none("server_only", kSame, kEngine),
};

// Of AReaL's dataclasses, where Tandem's default is another.
constexpr ForeignDefault kDefaults[] = {
    {"total_train_epochs", "1"},
    {"actor.dtype", R"("bfloat16")"},
    {"actor.optimizer.lr", "0.001"},
    {"actor.optimizer.weight_decay", "0.01"},
    {"actor.optimizer.beta1", "0.9"},
    {"actor.optimizer.beta2", "0.999"},
    {"actor.optimizer.lr_scheduler_type", R"("constant")"},
    {"actor.optimizer.min_lr_ratio", "0.0"},
    {"actor.optimizer.warmup_steps_proportion", "0.001"},
    {"actor.ppo_n_minibatches", "4"},
    {"actor.eps_clip", "0.2"},
    {"actor.kl_ctl", "0.1"},
    {"actor.kl_estimator", R"("k1")"},
    {"actor.importance_sampling_level", R"("token")"},
    {"actor.reward_scaling", "1.0"},
    {"actor.reward_bias", "0.0"},
    {"actor.reward_clip", "20.0"},
    {"gconfig.n_samples", "1"},
    {"gconfig.max_new_tokens", "16384"},
    {"rollout.max_head_offpolicyness", "0"},
};

constexpr std::string_view kMarks[] = {"gconfig.", "train_dataset.", "actor.ppo_n_minibatches",
                                       "rollout.max_head_offpolicyness", "allocation_mode"};

struct Norm {
  std::string mean, std;  // "batch", "group" or ""
  bool leave_one_out = false, present = false;
};

// A section that is there has AReaL's defaults for what it leaves out.
Norm norm_of(const Draft& draft, const std::string& section) {
  if (!draft.config().has_section(section)) return {};
  const auto level = [&](const std::string& key) -> std::string {
    const ForeignValue* const given = draft.config().find(key);
    if (!given) return "batch";
    const std::string text = draft.text(key);
    return text == "none" || text == "null" ? "" : text;
  };
  return {level(section + ".mean_level"), level(section + ".std_level"),
          draft.truth(section + ".mean_leave1out"), true};
}

void set_estimator(Draft& draft) {
  const Norm reward = norm_of(draft, "actor.reward_norm"), adv = norm_of(draft, "actor.adv_norm");
  constexpr std::string_view kFrom[] = {"actor.reward_norm.mean_level",
                                        "actor.adv_norm.mean_level"};
  const bool group = reward.mean == "group" || adv.mean == "group";
  const bool whitened = adv.mean == "batch" && adv.std == "batch";
  if (reward.leave_one_out || adv.leave_one_out) {
    draft.set("algorithm.adv_estimator", "rloo", {kFrom[0], kFrom[1]}, "mean_leave1out");
    const bool scaled = reward.std == "group" || (adv.mean == "group" && adv.std == "group");
    draft.set("algorithm.scale_rewards", scaled ? "group" : "none", {kFrom[0], kFrom[1]});
  } else if (group) {
    draft.set("algorithm.adv_estimator", "grpo", {kFrom[0], kFrom[1]});
    const std::string scale = reward.mean == "group" ? reward.std : adv.std;
    draft.set("algorithm.scale_rewards", scale.empty() ? "none" : scale, {kFrom[0], kFrom[1]});
  } else {
    draft.set("algorithm.adv_estimator", "reinforce_plus_plus", {kFrom[0], kFrom[1]},
              "no mean of a group is taken");
    if (!whitened && !(reward.mean == "batch" && reward.std == "batch"))
      draft.tell(kDiffers, {kFrom[1]},
                 "advantages that are not normalised are not in this version: they are whitened "
                 "over the batch");
    return;
  }
  if (whitened)
    draft.set("algorithm.advantage_batch_normalize", true, {"actor.adv_norm.mean_level"});
  else if (adv.present && reward.mean == "group")
    draft.tell(kDiffers, {"actor.adv_norm.mean_level"},
               "a second normalisation other than by the batch's mean and deviation is left out");
}

void set_loss(Draft& draft) {
  const bool sequence = draft.text("actor.importance_sampling_level") == "sequence";
  const bool cispo = draft.truth("actor.use_cispo_loss");
  draft.set("algorithm.loss_mode",
            cispo      ? "cispo"
            : sequence ? "gspo"
                       : "vanilla",
            {"actor.use_cispo_loss", "actor.importance_sampling_level"});
  if (sequence && !cispo)
    draft.tell(
        kDiffers, {"actor.importance_sampling_level"},
        "gspo averages over the tokens of a sequence and then over sequences, and AReaL over "
        "all tokens");
  const double low = draft.number("actor.eps_clip").value_or(0.2);
  set_clip(draft,
           {low, draft.number("actor.eps_clip_higher").value_or(low), draft.number("actor.c_clip")},
           {"actor.eps_clip"}, {"actor.eps_clip_higher", "actor.eps_clip"}, {"actor.c_clip"});
  const double weight = draft.number("actor.kl_ctl").value_or(0.1);
  if (weight == 0) return;
  if (!draft.config().has_section("ref"))
    return draft.tell(kDiffers, {"actor.kl_ctl"},
                      "without a section `ref` AReaL takes the log-probabilities themselves from "
                      "the reward: that is left out");
  draft.set("algorithm.use_kl_in_reward", true, {"actor.kl_ctl"});
  draft.set("algorithm.kl_ctrl.kl_coef", weight, {"actor.kl_ctl"});
  draft.set("algorithm.kl_penalty", draft.text("actor.kl_estimator"), {"actor.kl_estimator"});
  if (!draft.is("algorithm.adv_estimator", "reinforce_plus_plus"))
    draft.tell(kDiffers, {"actor.kl_ctl"},
               "AReaL takes the divergence of later tokens from a token's advantage; here a "
               "completion's is taken, beside its mean in the group");
}

// AReaL's filters by an estimate of the divergence. Its k1 is a ratio's logarithm, and its k3 is of
// the reverse ratio (KLEstimator in utils/data.py), which `token_k3` is not. Its weights of tokens
// have no bound.
void set_divergence(Draft& draft, const std::string& metric) {
  const std::string at = "actor.rejection_sampling.";
  const std::string upper_key = at + "upper", lower_key = at + "lower", metric_key = at + "metric";
  const double upper = draft.number(upper_key).value_or(5);
  const auto lower = draft.number(lower_key);
  const std::string agg = draft.text(at + "agg");
  const bool sequence = draft.text(at + "level") == "sequence", most = sequence && agg == "max";
  draft.set("algorithm.rollout_is", "token", {"actor.use_decoupled_loss"});
  draft.set("algorithm.rollout_is_threshold", 1000000, {metric_key}, "no bound");
  if (metric == "kl_k2") {
    const std::string form = !sequence ? "token_k2" : "seq_" + (agg.empty() ? "mean" : agg) + "_k2";
    set_rejection(draft, {{form, {}, upper, metric_key, metric_key, upper_key}});
    if (lower && *lower > 0)
      draft.tell(kDiffers, {lower_key}, "a divergence has no lower bound here");
  } else if (metric == "kl_k1" && !most && upper >= 0) {
    const std::string form = !sequence ? "token" : agg == "sum" ? "sequence" : "geometric";
    set_rejection(
        draft,
        {{form, lower ? std::exp(*lower) : 0, std::exp(upper), metric_key, lower_key, upper_key}},
        "exp of the bounds, which are of the logarithm");
  } else {
    draft.tell(kDiffers, {metric_key},
               "the criterion `" + metric + "`" + (most ? " by its greatest value" : "") +
                   " is not in this version: nothing is rejected");
  }
}

// The decoupled loss weighs by proximal against behaviour, and filters by the same ratio.
void set_decoupled(Draft& draft) {
  const std::string at = "actor.rejection_sampling.";
  if (!draft.truth("actor.use_decoupled_loss")) {
    if (draft.truth("actor.recompute_logprob"))
      draft.set("algorithm.bypass_mode", false, {"actor.recompute_logprob"});
    return;
  }
  draft.set("algorithm.bypass_mode", false, {"actor.use_decoupled_loss"});
  if (draft.text("actor.prox_logp_method") == "loglinear")
    draft.tell(kDiffers, {"actor.prox_logp_method"},
               "the proximal policy is computed, not estimated");
  std::string_view cap = "actor.behav_imp_weight_cap";
  if (!draft.given(cap)) cap = "actor.behave_imp_weight_cap";
  const bool filters = draft.config().has_section("actor.rejection_sampling");
  if (!filters && !draft.given(cap)) return;  // nothing is weighed either
  const double upper =
      filters ? draft.number(at + "upper").value_or(5) : draft.number(cap).value_or(1000000);
  draft.set("algorithm.rollout_is", "token", {"actor.use_decoupled_loss"});
  const std::string metric = draft.text(at + "metric"), action = draft.text(at + "action");
  const bool sequence = draft.text(at + "level") == "sequence";
  if (filters && !metric.empty() && metric != "ratio") return set_divergence(draft, metric);
  // The bound of a sequence's mean is none of a token's weight.
  const bool bounded = (filters || draft.given(cap)) && !sequence;
  draft.set("algorithm.rollout_is_threshold", bounded ? upper : 1000000, {at + "upper", cap},
            bounded ? "" : "no bound");
  const std::string agg = draft.text(at + "agg");
  if (sequence)
    draft.tell(kDiffers, {at + "level"},
               "weights are of tokens, and what is rejected is a sequence by its " +
                   std::string(agg == "sum" ? "ratio" : "geometric mean"));
  if (action == "clamp" && draft.number(at + "lower"))
    draft.tell(kDiffers, {at + "lower"}, "weights below it stay as they are");
  if (action == "clamp") return;
  if (sequence && agg == "max")
    return draft.tell(kDiffers, {at + "agg"}, "nothing is rejected by its greatest ratio");
  draft.set("algorithm.rollout_rs",
            !sequence      ? "token"
            : agg == "sum" ? "sequence"
                           : "geometric",
            {at + "level", at + "agg", cap}, "weights beyond the bound are masked");
  draft.set("algorithm.rollout_rs_threshold", upper, {at + "upper", cap});
  draft.set("algorithm.rollout_rs_threshold_lower", draft.number(at + "lower").value_or(0),
            {at + "lower", cap});
}

// AReaL pays (reward + bias) * scaling, within the clip.
void set_reward(Draft& draft) {
  const double scale = draft.number("actor.reward_scaling").value_or(1);
  const double bias = draft.number("actor.reward_bias").value_or(0);
  const double clip = draft.number("actor.reward_clip").value_or(20);
  draft.set("reward.scale", scale, {"actor.reward_scaling"});
  draft.set("reward.bias", bias * scale, {"actor.reward_bias", "actor.reward_scaling"});
  draft.set("reward.clip", json::array({-clip, clip}), {"actor.reward_clip"});
  const bool math = is_math_data(draft.text("train_dataset.path"));
  draft.set("reward.type", "math", {}, "in place of the reward function of AReaL's script");
  draft.tell(
      math ? kSame : kDiffers, {"train_dataset.path"},
      math ? "the reward is code of AReaL's training script; for these data it compares the "
             "final answers, as `math` does"
           : "the reward is code of AReaL's training script, which `math` stands in place of: "
             "write it as a function (`reward.type: python`)");
  if (draft.truth("actor.overlong_reward_penalty")) {
    draft.set("algorithm.overlong_buffer.len", draft.whole("actor.overlong_tokens").value_or(0),
              {"actor.overlong_tokens"});
    draft.set("algorithm.overlong_buffer.penalty_factor",
              draft.number("actor.overlong_penalty_factor").value_or(0),
              {"actor.overlong_penalty_factor"});
  }
}

void set_data(Draft& draft) {
  set_model(draft, draft.given("actor.path") ? "actor.path" : "tokenizer_path");
  set_data_files(draft, "data.train_files", "train_dataset.path");
  set_data_files(draft, "data.val_files", "valid_dataset.path");
  draft.set("data.prompt_is", "chat", {}, "AReaL makes a conversation of a prompt");
  if (draft.text("train_dataset.path").find("gsm8k") != std::string::npos) {
    draft.set("data.prompt_key", "question", {"train_dataset.path"});
    draft.tell(kDiffers, {"train_dataset.path"},
               "of these data AReaL asks in each prompt for an answer within \\boxed{}: write that "
               "into the data, or into `data.system_prompt`");
  }
  if (draft.given("train_dataset.max_length")) {
    draft.set("data.max_prompt_length", *draft.value("train_dataset.max_length"),
              {"train_dataset.max_length"});
    draft.set("data.filter_overlong_prompts", true, {"train_dataset.max_length"},
              "AReaL leaves longer prompts out");
  } else {
    set_open_prompt_limit(draft, 1024);
  }
  const auto batch = draft.whole("train_dataset.batch_size").value_or(0);
  const auto parts = std::max<std::int64_t>(draft.whole("actor.ppo_n_minibatches").value_or(4), 1);
  if (batch > 0)
    set_batch(draft, batch,
              batch % parts == 0 ? batch / parts : std::max<std::int64_t>(batch / parts, 1),
              {"train_dataset.batch_size"}, {"actor.ppo_n_minibatches"});
}

void derive(Draft& draft) {
  set_data(draft);
  draft.set("rollout.n", draft.whole("gconfig.n_samples").value_or(1), {"gconfig.n_samples"});
  draft.set("learner.optimizer.betas",
            json::array({draft.number("actor.optimizer.beta1").value_or(0.9),
                         draft.number("actor.optimizer.beta2").value_or(0.999)}),
            {"actor.optimizer.beta1", "actor.optimizer.beta2"});
  set_estimator(draft);
  set_loss(draft);
  set_decoupled(draft);
  set_reward(draft);
  if (const auto steps = draft.whole("total_train_steps")) {
    draft.set("learner.total_training_steps", *steps, {"total_train_steps"});
    draft.drop("data.total_epochs");
    if (draft.given("total_train_epochs"))
      draft.tell(kSame, {"total_train_epochs"}, "`learner.total_training_steps` decides");
  }
  if (draft.given("valid_dataset.path")) {
    const auto own = [&](std::string_view name) {
      const std::string key = "eval_gconfig." + std::string(name);
      return draft.given(key) ? key : "gconfig." + std::string(name);
    };
    const std::string temperature = own("temperature"), n = own("n_samples");
    draft.set("eval.temperature", draft.number(temperature).value_or(1), {temperature});
    draft.set("eval.n", draft.whole(n).value_or(1), {n});
  }
  const std::string mode = draft.text("stats_logger.wandb.mode");
  if (mode == "online" || mode == "offline" || mode == "shared")
    draft.set("trackers", json::array({"tensorboard", "wandb"}), {"stats_logger.wandb.mode"});
  if (!draft.given("saver.freq_steps") &&
      (draft.given("saver.freq_epochs") || draft.given("saver.freq_secs")))
    draft.set("learner.save_freq", 0, {"saver.freq_epochs", "saver.freq_secs"});
}

}  // namespace
}  // namespace areal

Dialect areal_dialect() {
  return {"areal", "AReaL", areal::kMarks, {}, areal::kRules, areal::kDefaults, areal::derive};
}

}  // namespace tandem::translate
