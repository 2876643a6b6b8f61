// SkyRL: YAML, or Hydra overrides of a script, in the names of both generations
// (`generator.backend` and `generator.inference_engine.backend`). Batches and mini-batches count
// prompts. Generation runs ahead only in its fully async program.
#include <algorithm>

#include "actors/translate/draft.h"
#include "actors/translate/frameworks.h"
#include "actors/translate/shared_keys.h"
#include "actors/translate/shared_rules.h"

namespace tandem::translate {
namespace skyrl {
namespace {

using nlohmann::json;
using enum Severity;

constexpr std::string_view kCritic = "PPO with a critic is not in this version";

Converted half(const json& value) {
  return {truth_of(value).value_or(true) ? "bfloat16" : "float32"};
}
Converted resume_mode(const json& value) {
  const std::string mode = text_of(value);
  if (mode == "none") return {"disable"};
  return {};
}

constexpr Rule kRules[] = {
    derived("data.train_data", "data.train_files"),
    derived("data.val_data", "data.val_files"),
    none("data.*", kSame, "how the data are read"),
    // The policy
    derived("trainer.policy.model.path", "model.path"),
    none("trainer.policy.model.lora.*", kSame, kAdapters),
    none("trainer.policy.model.lora.rank", kDiffers, kAdapters, "0"),
    none("trainer.target_modules", kSame, kAdapters),
    same("trainer.policy.optimizer_config.lr", "learner.optimizer.lr"),
    same("trainer.policy.optimizer_config.adam_betas", "learner.optimizer.betas"),
    same("trainer.policy.optimizer_config.weight_decay", "learner.optimizer.weight_decay"),
    same("trainer.policy.optimizer_config.max_grad_norm", "learner.optimizer.grad_clip"),
    derived("trainer.policy.optimizer_config.num_warmup_steps",
            "learner.optimizer.lr_warmup_steps"),
    derived("trainer.policy.optimizer_config.scheduler", "learner.optimizer.lr_scheduler_type"),
    none("trainer.policy.deepspeed_config*", kSame, kLayout),
    none("trainer.policy.fsdp_config.*", kSame, kLayout),
    none("trainer.policy.megatron_config.*", kSame, kLayout),
    none("trainer.policy.sequence_parallel_size", kSame, kLayout),
    none("trainer.policy.use_torch_compile", kSame, kLayout),
    none("trainer.policy.record_memory", kSame, kLayout),
    none("trainer.policy.optimizer_config.offload_after_step", kSame, kLayout),
    none("trainer.policy.model_config_kwargs*", kDiffers, "the model is as its directory says"),
    none("trainer.rope_*", kDiffers, "the model is as its directory says"),
    none("trainer.ref.*", kSame, kLayout),
    none("trainer.ref.model.path", kDiffers,
         "the divergence is from the weights at the start, not from those of another model"),
    none("trainer.critic.*", kSame, kCritic),
    none("trainer.critic.model.path", kDiffers, kCritic),
    none("trainer.reward.model.path", kDiffers, "reward models are not in this version"),
    none("trainer.reward.*", kSame, kLayout),
    same("trainer.bf16", "model.dtype", half),
    same("trainer.gradient_checkpointing", "learner.enable_gradient_checkpointing"),
    // Steps
    derived("trainer.train_batch_size", "data.train_batch_size"),
    derived("trainer.policy_mini_batch_size", "learner.ppo_mini_batch_size"),
    same("trainer.update_epochs_per_batch", "learner.ppo_epochs"),
    same("trainer.epochs", "data.total_epochs"),
    derived("trainer.max_training_steps", "learner.total_training_steps"),
    same("trainer.max_prompt_length", "data.max_prompt_length"),
    same("trainer.seed", "seed"),
    same("trainer.ckpt_interval", "learner.save_freq", negative_is_zero),
    same("trainer.max_ckpts_to_keep", "learner.max_ckpt_to_keep", unless_negative),
    same("trainer.eval_interval", "learner.test_freq", negative_is_zero),
    same("trainer.eval_before_train", "learner.val_before_train"),
    none("trainer.eval_batch_size", kSame, "an evaluation is of all prompts at once"),
    same("trainer.resume_mode", "learner.resume_mode", resume_mode),
    none("trainer.resume_path", kToDo, "`tandem run --resume RUN` goes on with a run"),
    same("trainer.project_name", "tracking.project"),
    same("trainer.run_name", "name"),
    derived("trainer.logger", "trackers"),
    none("trainer.micro_*", kSame, kMicro),
    none("trainer.critic_mini_batch_size", kSame, kCritic),
    none("trainer.update_ref_every_epoch", kDiffers,
         "the divergence is from the weights at the start, which stay the same", "false"),
    none("trainer.use_orm_score", kDiffers, "reward models are not in this version", "false"),
    none("trainer.step_wise_training", kDiffers, kTurns, "false"),
    none("trainer.placement.*", kSame, kLayout),
    // The loss
    derived("trainer.algorithm.advantage_estimator", "algorithm.adv_estimator"),
    derived("trainer.algorithm.grpo_norm_by_std", "algorithm.norm_adv_by_std_in_grpo"),
    same("trainer.algorithm.advantage_batch_normalize", "algorithm.advantage_batch_normalize"),
    derived("trainer.algorithm.use_kl_loss", "algorithm.use_kl_loss"),
    derived("trainer.algorithm.kl_loss_coef", "algorithm.kl_loss_coef"),
    derived("trainer.algorithm.kl_estimator_type", "algorithm.kl_loss_type"),
    derived("trainer.algorithm.use_kl_estimator_k3", "algorithm.kl_loss_type"),
    none("trainer.algorithm.use_abs_kl", kDiffers,
         "`kl_loss_type: abs` is the size of the estimate", "false"),
    derived("trainer.algorithm.use_kl_in_reward", "algorithm.use_kl_in_reward"),
    none("trainer.algorithm.kl_ctrl.type", kDiffers, "the weight of the divergence stays the same",
         "fixed"),
    none("trainer.algorithm.kl_*", kSame, "settings of an adaptive weight"),
    none("trainer.algorithm.init_kl_coef", kSame, "settings of an adaptive weight"),
    derived("trainer.algorithm.use_entropy_loss", "algorithm.entropy_coeff"),
    derived("trainer.algorithm.entropy_loss_coef", "algorithm.entropy_coeff"),
    derived("trainer.algorithm.policy_loss_type", "algorithm.loss_mode"),
    derived("trainer.algorithm.ppo_loss_type", "algorithm.loss_mode"),
    derived("trainer.algorithm.loss_reduction", "algorithm.loss_agg_mode"),
    derived("trainer.algorithm.eps_clip_low", "algorithm.clip_ratio_low"),
    derived("trainer.algorithm.eps_clip_high", "algorithm.clip_ratio_high"),
    derived("trainer.algorithm.clip_ratio_c", "algorithm.clip_ratio_c"),
    derived("trainer.algorithm.cispo.cispo_eps_clip_low", "algorithm.clip_ratio_low"),
    derived("trainer.algorithm.cispo.cispo_eps_clip_high", "algorithm.clip_ratio_high"),
    none("trainer.algorithm.zero_variance_filter", kSame,
         "a group whose rewards are all the same has no gradient", "false"),
    derived("trainer.algorithm.use_tis", "algorithm.rollout_is"),
    derived("trainer.algorithm.tis_imp_ratio_cap", "algorithm.rollout_is_threshold"),
    derived("trainer.algorithm.off_policy_correction.tis_ratio_type", "algorithm.rollout_is"),
    derived("trainer.algorithm.off_policy_correction.token_tis_ratio_clip_high",
            "algorithm.rollout_is_threshold"),
    derived("trainer.algorithm.off_policy_correction.sequence_tis_ratio_clip_high",
            "algorithm.rollout_is_threshold"),
    derived("trainer.algorithm.off_policy_correction.token_mask_is_threshold_low",
            "algorithm.rollout_rs_threshold_lower"),
    derived("trainer.algorithm.off_policy_correction.token_mask_is_threshold_high",
            "algorithm.rollout_rs_threshold"),
    derived("trainer.algorithm.off_policy_correction.sequence_mask_metric", "algorithm.rollout_rs"),
    derived("trainer.algorithm.off_policy_correction.geo_mask_low",
            "algorithm.rollout_rs_threshold_lower"),
    derived("trainer.algorithm.off_policy_correction.geo_mask_high",
            "algorithm.rollout_rs_threshold"),
    derived("trainer.algorithm.off_policy_correction.product_mask_low",
            "algorithm.rollout_rs_threshold_lower"),
    derived("trainer.algorithm.off_policy_correction.product_mask_high",
            "algorithm.rollout_rs_threshold"),
    derived("trainer.algorithm.off_policy_correction.outlier_token_is_threshold_low",
            "algorithm.rollout_token_veto_threshold"),
    none("trainer.algorithm.off_policy_correction.outlier_token_is_threshold_high", kDiffers,
         "a sequence is not left out for one token whose ratio is too high"),
    derived("trainer.algorithm.dynamic_sampling.type", "algorithm.filter_groups.enable"),
    derived("trainer.algorithm.dynamic_sampling.max_sample_batches",
            "algorithm.filter_groups.max_num_gen_batches"),
    none("trainer.algorithm.dynamic_sampling.*", kSame, "groups are replaced one by one"),
    none("trainer.algorithm.gamma", kDiffers, "rewards are not discounted", "1"),
    none("trainer.algorithm.lambd", kSame, kCritic),
    none("trainer.algorithm.value_*", kSame, kCritic),
    none("trainer.algorithm.normalize_reward", kSame, "it is for reward models"),
    none("trainer.algorithm.max_seq_len", kDiffers,
         "the sums of `seq-mean-token-sum-norm` are divided by `data.max_response_length`"),
    none("trainer.algorithm.sapo.*", kSame, "settings of losses that are not used"),
    none("trainer.algorithm.clip_cov.*", kSame, "settings of losses that are not used"),
    none("trainer.algorithm.kl_cov.*", kSame, "settings of losses that are not used"),
    // Asynchrony
    derived("trainer.fully_async.max_staleness_steps", "async.max_staleness"),
    derived("trainer.fully_async.enabled", "async.max_staleness"),
    none("trainer.fully_async.*", kSame, kEngine),
    none("trainer.ckpt_path", kSame, kLogs),
    none("trainer.export_path", kSame, kLogs),
    none("trainer.hf_save_interval", kSame, kLogs),
    none("trainer.log_path", kSame, kLogs),
    none("trainer.dump_*", kSame, kLogs),
    none("trainer.strategy", kSame, kLogs),
    none("trainer.sequence_parallel_backend", kSame, kLogs),
    none("trainer.use_sample_packing", kSame, kLogs),
    none("trainer.flash_attn", kSame, kLogs),
    none("trainer.disable_fast_tokenizer", kSame, kLogs),
    none("trainer.gradient_checkpointing_use_reentrant", kSame, kLogs),
    none("trainer.save_*", kSame, kLogs),
    // Sampling
    derived("generator.n_samples_per_prompt", "rollout.n"),
    same("generator.sampling_params.max_generate_length", "data.max_response_length"),
    same("generator.sampling_params.temperature", "rollout.temperature"),
    same("generator.sampling_params.top_p", "rollout.top_p"),
    same("generator.sampling_params.min_p", "rollout.min_p"),
    same("generator.sampling_params.top_k", "rollout.top_k", negative_is_zero),
    same("generator.sampling_params.stop", "rollout.stop"),
    none("generator.sampling_params.repetition_penalty", kDiffers,
         "a penalty on repetition is not in this version", "1"),
    none("generator.sampling_params.logprobs", kSame, kEngine),
    derived("generator.eval_sampling_params.temperature", "eval.temperature"),
    derived("generator.eval_sampling_params.top_p", "eval.top_p"),
    derived("generator.eval_sampling_params.top_k", "eval.top_k"),
    none("generator.eval_sampling_params.max_generate_length", kSame,
         "evaluations have the length of training"),
    none("generator.eval_sampling_params.repetition_penalty", kDiffers,
         "a penalty on repetition is not in this version", "1"),
    none("generator.eval_sampling_params.min_p", kDiffers,
         "evaluations cut no token off by `min_p`", "0"),
    none("generator.eval_sampling_params.stop", kDiffers,
         "a completion of an evaluation ends where one of training does"),
    none("generator.eval_sampling_params.*", kSame, kEngine),
    derived("generator.eval_n_samples_per_prompt", "eval.n"),
    none("generator.max_turns", kDiffers, kTurns, "1"),
    none("generator.step_wise_*", kDiffers, kTurns, "false"),
    none("generator.use_conversation_multi_turn", kSame, kTurns),
    none(
        "generator.zero_reward_on_non_stop", kDiffers,
        "a truncated completion keeps its reward; `algorithm.mask_truncated_completions` leaves it "
        "out of the loss",
        "false"),
    same("generator.apply_overlong_filtering", "algorithm.mask_truncated_completions"),
    none("generator.is_vlm", kDiffers, "models of this version get text alone", "false"),
    same("generator.chat_template_kwargs", "data.chat_template_kwargs"),
    same("generator.chat_template_kwargs.enable_thinking", "data.enable_thinking"),
    none("generator.chat_template.name_or_path", kDiffers, "name it in `data.chat_template`"),
    none("generator.model_name", kSame, kEngine),
    none("generator.model_dtype", kSame, kEngine),
    none("generator.run_engines_locally", kSame, kEngine),
    none("generator.num_inference_engines", kSame, kEngine),
    none("generator.backend", kSame, kEngine),
    none("generator.weight_*", kSame, kEngine),
    none("generator.external_*", kSame, kEngine),
    none("generator.inference_engine*", kSame, kEngine),
    none("generator.async_engine", kSame, kEngine),
    none("generator.batched", kSame, kEngine),
    none("generator.max_input_length", kSame, kEngine),
    none("generator.vllm_v1_disable_multiproc", kSame, kEngine),
    none("generator.enable_prefix_caching", kSame, kEngine),
    none("generator.enable_chunked_prefill", kSame, kEngine),
    none("generator.max_num_batched_tokens", kSame, kEngine),
    none("generator.enforce_eager", kSame, kEngine),
    none("generator.fully_sharded_loras", kSame, kEngine),
    none("generator.enable_ray_prometheus_stats", kSame, kEngine),
    none("generator.gpu_memory_utilization", kSame, kEngine),
    none("generator.max_num_seqs", kSame, kEngine),
    none("generator.remote_inference_engine_urls", kSame, kEngine),
    none("generator.enable_http_endpoint", kSame, kEngine),
    none("generator.http_endpoint_*", kSame, kEngine),
    none("generator.served_model_name", kSame, kEngine),
    none("generator.chat_template.source", kSame, kEngine),
    none("generator.engine_init_kwargs*", kSame, kEngine),
    none("generator.override_existing_update_group", kSame, kEngine),
    // The environment
    derived("environment.env_class", "reward.type"),
    none("environment.*", kSame, kLayout),
    none("defaults", kSame, "SkyRL's own values are filled in"),
    none("hydra.*", kSame, kLogs),
    none("launcher.*", kSame, kLayout),
};

// Of SkyRL's configuration, where Tandem's default is another.
constexpr ForeignDefault kDefaults[] = {
    {"trainer.policy.optimizer_config.lr", "1e-6"},
    {"trainer.policy.optimizer_config.adam_betas", "[0.9, 0.999]"},
    {"trainer.policy.optimizer_config.weight_decay", "0.01"},
    {"trainer.policy.optimizer_config.num_warmup_steps", "0"},
    {"trainer.policy.optimizer_config.scheduler", R"("constant_with_warmup")"},
    {"trainer.policy.model.path", R"("Qwen/Qwen2.5-1.5B-Instruct")"},
    {"trainer.bf16", "true"},
    {"trainer.gradient_checkpointing", "true"},
    {"trainer.train_batch_size", "1024"},
    {"trainer.policy_mini_batch_size", "256"},
    {"trainer.epochs", "1"},
    {"trainer.max_prompt_length", "512"},
    {"trainer.ckpt_interval", "10"},
    {"trainer.eval_interval", "5"},
    {"trainer.algorithm.advantage_estimator", R"("grpo")"},
    {"trainer.algorithm.grpo_norm_by_std", "true"},
    {"trainer.algorithm.use_kl_loss", "true"},
    {"trainer.algorithm.kl_loss_coef", "0.001"},
    {"trainer.algorithm.kl_estimator_type", R"("k3")"},
    {"trainer.algorithm.entropy_loss_coef", "0.01"},
    {"trainer.algorithm.policy_loss_type", R"("regular")"},
    {"trainer.algorithm.loss_reduction", R"("token_mean")"},
    {"trainer.algorithm.eps_clip_low", "0.2"},
    {"trainer.algorithm.eps_clip_high", "0.2"},
    {"trainer.algorithm.clip_ratio_c", "3.0"},
    {"trainer.algorithm.dynamic_sampling.max_sample_batches", "30"},
    {"generator.n_samples_per_prompt", "5"},
    {"generator.sampling_params.max_generate_length", "1024"},
    {"generator.eval_sampling_params.temperature", "0.0"},
    {"generator.eval_n_samples_per_prompt", "1"},
    {"environment.env_class", R"("gsm8k")"},
};

constexpr std::string_view kMarks[] = {"trainer.policy.", "trainer.placement.",
                                       "generator.n_samples_per_prompt",
                                       "generator.sampling_params.", "environment.env_class"};
constexpr std::string_view kPrograms[] = {"skyrl"};

void set_data(Draft& draft) {
  set_model(draft, "trainer.policy.model.path");
  set_data_files(draft, "data.train_files", "data.train_data");
  set_data_files(draft, "data.val_files", "data.val_data");
  draft.set("data.answer_key", "reward_spec.ground_truth", {}, "where SkyRL's data files have it");
  draft.set("data.filter_overlong_prompts", true, {}, "SkyRL leaves longer prompts out");
  set_trackers(draft, "trainer.logger");
  const auto batch = draft.whole("trainer.train_batch_size", 1024);
  const auto mini = draft.whole("trainer.policy_mini_batch_size", 256);
  set_batch(draft, batch, mini, {"trainer.train_batch_size"}, {"trainer.policy_mini_batch_size"});
  draft.set("rollout.n", draft.whole("generator.n_samples_per_prompt", 5),
            {"generator.n_samples_per_prompt"});
  // Warm-up steps count updates, and the job's steps count batches.
  const std::string at = "trainer.policy.optimizer_config.";
  const auto warmup = draft.whole(at + "num_warmup_steps", 0);
  const auto updates = std::max<std::int64_t>(batch / std::max<std::int64_t>(mini, 1), 1) *
                       std::max<std::int64_t>(draft.whole("trainer.update_epochs_per_batch", 1), 1);
  draft.set("learner.optimizer.lr_warmup_steps", (warmup + updates - 1) / updates,
            {at + "num_warmup_steps"}, warmup > 0 && updates > 1 ? "in batches" : "");
  const std::string type = draft.text(at + "scheduler");
  const bool constant = type.starts_with("constant"), cosine = type.starts_with("cosine");
  draft.set("learner.optimizer.lr_scheduler_type",
            constant ? "constant"
            : cosine ? "cosine"
                     : "linear",
            {at + "scheduler"});
  if (!constant) draft.set("learner.optimizer.min_lr_ratio", 0, {at + "scheduler"});
}

void set_estimator(Draft& draft) {
  const std::string at = "trainer.algorithm.";
  const std::string name = draft.text(at + "advantage_estimator");
  std::string ours = name == "reinforce++" ? "reinforce_plus_plus" : name;
  if (ours != "grpo" && ours != "rloo" && ours != "reinforce_plus_plus") {
    draft.tell(kDiffers, {at + "advantage_estimator"},
               "the estimator `" + name + "` is not in this version: grpo stands in its place");
    ours = "grpo";
  }
  draft.set("algorithm.adv_estimator", ours, {at + "advantage_estimator"});
  if (ours == "grpo")
    draft.set("algorithm.norm_adv_by_std_in_grpo", draft.truth(at + "grpo_norm_by_std"),
              {at + "grpo_norm_by_std"});
}

void set_loss(Draft& draft) {
  const std::string at = "trainer.algorithm.";
  const std::string kind =
      at + (draft.given(at + "ppo_loss_type") ? "ppo_loss_type" : "policy_loss_type");
  const std::string type = draft.text(kind);
  const bool known = type == "regular" || type == "dual_clip" || type == "gspo" || type == "cispo";
  if (!known)
    draft.tell(kDiffers, {kind},
               "the loss `" + type +
                   "` is not in this version: the clip per "
                   "token stands in its place");
  const std::string mode = type == "gspo" || type == "cispo" ? type : "vanilla";
  draft.set("algorithm.loss_mode", mode, {kind});
  const std::string reduction = draft.text(at + "loss_reduction");
  const bool averaged = reduction == "token_mean" || reduction == "sequence_mean" ||
                        reduction == "seq_mean_token_sum_norm";
  if (mode != "gspo" && !averaged)
    draft.tell(kDiffers, {at + "loss_reduction"},
               "the average `" + reduction +
                   "` is not in this version: that over all tokens "
                   "stands in its place");
  if (mode != "gspo")
    draft.set("algorithm.loss_agg_mode",
              reduction == "sequence_mean"             ? "seq-mean-token-mean"
              : reduction == "seq_mean_token_sum_norm" ? "seq-mean-token-sum-norm"
                                                       : "token-mean",
              {at + "loss_reduction"});
  Clip clip{draft.number(at + "eps_clip_low").value_or(0.2),
            draft.number(at + "eps_clip_high").value_or(0.2),
            type == "dual_clip" ? draft.number(at + "clip_ratio_c") : std::nullopt};
  // SkyRL's cispo bounds the ratio between 1 - low and 1 + high.
  if (mode == "cispo") {
    clip.low = 1 - draft.number(at + "cispo.cispo_eps_clip_low").value_or(0);
    clip.high = draft.number(at + "cispo.cispo_eps_clip_high").value_or(5);
  }
  set_clip(draft, clip, {at + "eps_clip_low", at + "cispo.cispo_eps_clip_low"},
           {at + "eps_clip_high", at + "cispo.cispo_eps_clip_high"}, {at + "clip_ratio_c", kind});
  if (draft.truth(at + "use_entropy_loss"))
    draft.set("algorithm.entropy_coeff", draft.number(at + "entropy_loss_coef").value_or(0.01),
              {at + "entropy_loss_coef", at + "use_entropy_loss"});
}

void set_kl(Draft& draft) {
  const std::string at = "trainer.algorithm.";
  const double weight = draft.number(at + "kl_loss_coef").value_or(0.001);
  std::string kind = draft.text(at + "kl_estimator_type");
  if (draft.given(at + "use_kl_estimator_k3") && !draft.truth(at + "use_kl_estimator_k3"))
    kind = "k1";
  if (draft.truth(at + "use_kl_in_reward")) {
    draft.set("algorithm.use_kl_in_reward", true, {at + "use_kl_in_reward"});
    draft.set("algorithm.kl_ctrl.kl_coef", weight, {at + "kl_loss_coef"});
    draft.set("algorithm.kl_penalty", kind, {at + "kl_estimator_type"});
  }
  if (draft.truth(at + "use_kl_loss"))
    set_kl_loss(draft, weight, kind, {at + "kl_loss_coef", at + "use_kl_loss"},
                {at + "kl_estimator_type", at + "use_kl_estimator_k3"});
}

void set_correction(Draft& draft) {
  const std::string at = "trainer.algorithm.", off = at + "off_policy_correction.";
  std::string weighs = draft.text(off + "tis_ratio_type");
  std::string bound =
      off + (weighs == "sequence" ? "sequence_tis_ratio_clip_high" : "token_tis_ratio_clip_high");
  if (draft.truth(at + "use_tis")) {
    weighs = "token";
    bound = at + "tis_imp_ratio_cap";
  }
  if (weighs == "token" || weighs == "sequence") {
    draft.set("algorithm.bypass_mode", false, {off + "tis_ratio_type", at + "use_tis"});
    draft.set("algorithm.rollout_is", weighs, {off + "tis_ratio_type", at + "use_tis"});
    draft.set("algorithm.rollout_is_threshold",
              draft.number(bound).value_or(weighs == "token" ? 2.0 : 5.0), {bound});
  }
  const std::string low = off + "token_mask_is_threshold_low";
  const std::string high = off + "token_mask_is_threshold_high";
  const std::string metric = off + "sequence_mask_metric", mask = draft.text(metric);
  const std::string veto = off + "outlier_token_is_threshold_low";
  std::vector<Criterion> criteria;
  // SkyRL masks tokens where both bounds are given.
  if (draft.number(low) && draft.number(high))
    criteria.push_back({"token", draft.number(low), draft.number(high), high, low, high});
  const bool geometric = mask == "geometric";
  const std::string name = off + (geometric ? "geo_mask_" : "product_mask_");
  const std::string name_low = name + "low", name_high = name + "high";
  if (geometric || mask == "product")
    criteria.push_back({geometric ? "geometric" : "sequence",
                        draft.number(name_low).value_or(geometric ? 0.99 : 0.5),
                        draft.number(name_high).value_or(geometric ? 1.01 : 2.0), metric, name_low,
                        name_high});
  set_rejection(draft, criteria, "what is beyond the bounds is masked");
  if (const auto threshold = draft.number(veto))
    draft.set("algorithm.rollout_token_veto_threshold", *threshold, {veto});
  if (!criteria.empty() || draft.number(veto))
    draft.set("algorithm.bypass_mode", false, {metric, low, veto});
}

void set_filter(Draft& draft) {
  const std::string at = "trainer.algorithm.dynamic_sampling.";
  const std::string type = draft.text(at + "type");
  if (type != "filter" && type != "replace") return;
  const auto most = draft.whole(at + "max_sample_batches", 30);
  draft.set("algorithm.filter_groups.enable", true, {at + "type"});
  draft.set("algorithm.filter_groups.max_num_gen_batches", most > 0 ? most : 1000000,
            {at + "max_sample_batches"}, most > 0 ? "" : "no limit");
}

void set_environment(Draft& draft) {
  const std::string name = draft.text("environment.env_class");
  draft.set("reward.type", "math", {}, "in place of SkyRL's environment");
  if (name == "gsm8k" || name == "aime")
    draft.tell(kSame, {"environment.env_class"},
               "`" + name + "` compares final answers, as `math` does");
  else
    draft.tell(kDiffers, {"environment.env_class"},
               "the environment `" + name +
                   "` has no counterpart, and `math` stands in its place: "
                   "write its reward as a function (`reward.type: python`)");
}

void set_run(Draft& draft) {
  const std::string at = "generator.eval_sampling_params.";
  const double temperature = draft.number(at + "temperature").value_or(0);
  draft.set("eval.temperature", temperature, {at + "temperature"});
  if (temperature > 0) {
    draft.set("eval.n", draft.whole("generator.eval_n_samples_per_prompt", 1),
              {"generator.eval_n_samples_per_prompt"});
    draft.set("eval.top_p", draft.number(at + "top_p").value_or(1), {at + "top_p"});
    draft.set("eval.top_k", std::max<std::int64_t>(draft.whole(at + "top_k", 0), 0),
              {at + "top_k"});
  }
  const std::string stale = "trainer.fully_async.max_staleness_steps";
  const bool ahead = draft.truth("trainer.fully_async.enabled") || draft.given(stale) ||
                     draft.config().program.find("async") != std::string::npos;
  if (!ahead) return set_synchronous(draft);
  draft.set("async.max_staleness", draft.whole(stale, 4), {stale, "trainer.fully_async.enabled"});
  draft.set("algorithm.bypass_mode", false, {stale, "trainer.fully_async.enabled"},
            "the learner computes the old policy");
}

void derive(Draft& draft) {
  set_data(draft);
  set_estimator(draft);
  set_loss(draft);
  set_kl(draft);
  set_correction(draft);
  set_filter(draft);
  set_environment(draft);
  set_run(draft);
  if (const auto steps = draft.whole("trainer.max_training_steps")) {
    draft.set("learner.total_training_steps", *steps, {"trainer.max_training_steps"});
    draft.drop("data.total_epochs");
    if (draft.given("trainer.epochs"))
      draft.tell(kSame, {"trainer.epochs"}, "`learner.total_training_steps` decides");
  }
}

}  // namespace
}  // namespace skyrl

Dialect skyrl_dialect() {
  return {"skyrl",       "SkyRL",          skyrl::kMarks, skyrl::kPrograms,
          skyrl::kRules, skyrl::kDefaults, skyrl::derive};
}

}  // namespace tandem::translate
