// OpenRLHF's PPO by flags, in the names of both generations: `--rollout_batch_size` and
// `--rollout.batch_size`. A flag's newer name is turned into the older one's value at the start of
// derive(), so that each is computed once.
//
//   rollout_batch_size   prompts of a step
//   train_batch_size     completions of an update: prompts times n_samples_per_prompt
//   KL                   in the reward, unless use_kl_loss; 0.01 by default
#include <algorithm>
#include <cmath>

#include "actors/translate/draft.h"
#include "actors/translate/frameworks.h"
#include "actors/translate/shared_keys.h"
#include "actors/translate/shared_rules.h"

namespace tandem::translate {
namespace openrlhf {
namespace {

using nlohmann::json;
using enum Severity;

constexpr std::string_view kCritic = "a critic is not in this version";

constexpr Rule kRules[] = {
    // The model
    derived("pretrain", "model.path"),
    derived("actor.model_name_or_path", "model.path"),
    derived("bf16", "model.dtype"),
    derived("param_dtype", "model.dtype"),
    derived("ds.param_dtype", "model.dtype"),
    same("gradient_checkpointing", "learner.enable_gradient_checkpointing"),
    same("actor.gradient_checkpointing_enable", "learner.enable_gradient_checkpointing"),
    none("lora_*", kSame, kAdapters),
    none("lora_rank", kDiffers, kAdapters, "0"),
    none("load_in_4bit", kDiffers, kAdapters, "false"),
    none("target_modules", kSame, kAdapters),
    none("reward_pretrain", kDiffers, kRewardModel),
    none("reward.model_name_or_path", kDiffers, kRewardModel),
    none("ref.model_name_or_path", kDiffers,
         "the divergence is from the weights at the start, not from those of another model"),
    none("ref_pretrain", kDiffers,
         "the divergence is from the weights at the start, not from those of another model"),
    none("critic_pretrain", kSame, kCritic),
    none("critic_*", kSame, kCritic),
    none("critic.*", kSame, kCritic),
    none("freezing_actor_steps", kDiffers, kCritic, "-1|0"),
    none("value_*", kSame, kCritic),
    none("save_value_network", kSame, kCritic),
    // The data
    derived("prompt_data", "data.train_files"),
    derived("data.prompt_dataset", "data.train_files"),
    none("prompt_data_probs", kDiffers, "give the weights by data set in `data.mixture`"),
    none("data.prompt_probs", kDiffers, "give the weights by data set in `data.mixture`"),
    none("prompt_split", kSame, "of a folder the train split is taken", "train"),
    none("data.prompt_split", kSame, "of a folder the train split is taken", "train"),
    derived("eval_dataset", "data.val_files"),
    derived("eval.dataset", "data.val_files"),
    none("eval_split", kSame, "of a folder the validation or test split is taken"),
    none("eval.split", kSame, "of a folder the validation or test split is taken"),
    same("input_key", "data.prompt_key"),
    same("data.input_key", "data.prompt_key"),
    same("label_key", "data.answer_key"),
    same("data.label_key", "data.answer_key"),
    derived("apply_chat_template", "data.prompt_is"),
    derived("data.apply_chat_template", "data.prompt_is"),
    none("input_template", kDiffers,
         "write the whole prompt into the data, or use the chat template"),
    none("data.input_template", kDiffers,
         "write the whole prompt into the data, or use the chat template"),
    none("data.image_key", kDiffers, "models of this version get text alone"),
    none("data.tools_key", kDiffers, kTurns),
    derived("prompt_max_len", "data.max_prompt_length"),
    derived("data.max_len", "data.max_prompt_length"),
    derived("max_len", "data.max_prompt_length"),
    derived("generate_max_len", "data.max_response_length"),
    derived("rollout.max_new_tokens", "data.max_response_length"),
    derived("max_samples", "data.max_samples"),
    derived("data.max_samples", "data.max_samples"),
    // Batches
    derived("rollout_batch_size", "data.train_batch_size"),
    derived("rollout.batch_size", "data.train_batch_size"),
    derived("train_batch_size", "learner.ppo_mini_batch_size"),
    derived("train.batch_size", "learner.ppo_mini_batch_size"),
    derived("n_samples_per_prompt", "rollout.n"),
    derived("rollout.n_samples_per_prompt", "rollout.n"),
    same("max_epochs", "learner.ppo_epochs"),
    same("train.max_epochs", "learner.ppo_epochs"),
    same("num_episodes", "data.total_epochs"),
    same("train.num_episodes", "data.total_epochs"),
    none("micro_*", kSame, kMicro),
    none("train.micro_batch_size", kSame, kMicro),
    none("rollout.micro_batch_size", kSame, kMicro),
    none("use_dynamic_batch", kSame, kMicro),
    none("train_max_tokens_per_gpu", kSame, kMicro),
    none("rollout_max_tokens_per_gpu", kSame, kMicro),
    none("vllm_generate_batch_size", kSame, "prompts are admitted one by one, as there is room"),
    none("rollout.vllm_generate_batch_size", kSame,
         "prompts are admitted one by one, as there is room"),
    // Sampling
    same("temperature", "rollout.temperature"),
    same("rollout.temperature", "rollout.temperature"),
    same("top_p", "rollout.top_p"),
    same("rollout.top_p", "rollout.top_p"),
    derived("eval_temperature", "eval.temperature"),
    derived("eval.temperature", "eval.temperature"),
    derived("eval_n_samples_per_prompt", "eval.n"),
    derived("eval.n_samples_per_prompt", "eval.n"),
    same("enable_prefix_caching", "rollout.enable_prefix_caching"),
    same("vllm.enable_prefix_caching", "rollout.enable_prefix_caching"),
    // The optimizer
    same("actor_learning_rate", "learner.optimizer.lr"),
    same("actor.adam.lr", "learner.optimizer.lr"),
    derived("lr_warmup_ratio", "learner.optimizer.lr_warmup_steps_ratio"),
    derived("actor.lr_warmup_ratio", "learner.optimizer.lr_warmup_steps_ratio"),
    derived("lr_scheduler", "learner.optimizer.lr_scheduler_type"),
    derived("actor.lr_scheduler", "learner.optimizer.lr_scheduler_type"),
    same("l2", "learner.optimizer.weight_decay"),
    same("actor.adam.weight_decay", "learner.optimizer.weight_decay"),
    same("adam_betas", "learner.optimizer.betas"),
    same("actor.adam.betas", "learner.optimizer.betas"),
    same("max_norm", "learner.optimizer.grad_clip"),
    same("actor.max_norm", "learner.optimizer.grad_clip"),
    // The loss
    derived("advantage_estimator", "algorithm.adv_estimator"),
    derived("algo.advantage.estimator", "algorithm.adv_estimator"),
    derived("no_advantage_std_norm", "algorithm.scale_rewards"),
    derived("algo.advantage.no_std_norm", "algorithm.scale_rewards"),
    derived("policy_loss_type", "algorithm.loss_mode"),
    derived("actor.policy_loss_type", "algorithm.loss_mode"),
    derived("eps_clip", "algorithm.clip_ratio_low"),
    derived("actor.eps_clip", "algorithm.clip_ratio_low"),
    derived("eps_clip_low_high", "algorithm.clip_ratio_low and _high"),
    derived("actor.eps_clip_low_high", "algorithm.clip_ratio_low and _high"),
    derived("dual_clip", "algorithm.clip_ratio_c"),
    derived("actor.dual_clip", "algorithm.clip_ratio_c"),
    same("entropy_loss_coef", "algorithm.entropy_coeff"),
    same("actor.entropy_coef", "algorithm.entropy_coeff"),
    derived("init_kl_coef", "algorithm.kl_ctrl.kl_coef"),
    derived("algo.kl.init_coef", "algorithm.kl_ctrl.kl_coef"),
    derived("use_kl_loss", "algorithm.use_kl_loss"),
    derived("algo.kl.use_loss", "algorithm.use_kl_loss"),
    derived("kl_estimator", "algorithm.kl_penalty"),
    derived("algo.kl.estimator", "algorithm.kl_penalty"),
    none("kl_target", kDiffers, "the weight of the divergence stays the same"),
    none("kl_horizon", kSame, "a setting of an adaptive weight"),
    none("gamma", kDiffers, "rewards are not discounted", "1"),
    none("lambd", kSame, kCritic),
    none("aux_loss_coef", kDiffers, "mixtures of experts are not in this version", "0"),
    none("ptx_coef", kSame, "a setting of a loss that is not used"),
    derived("enable_vllm_is_correction", "algorithm.rollout_is"),
    derived("algo.advantage.is_correction_enable", "algorithm.rollout_is"),
    derived("vllm_is_truncated_threshold", "algorithm.rollout_is_threshold"),
    derived("algo.advantage.is_correction_threshold", "algorithm.rollout_is_threshold"),
    derived("vllm_is_correction_type", "algorithm.rollout_rs"),
    derived("algo.advantage.is_correction_type", "algorithm.rollout_rs"),
    derived("dynamic_filtering", "algorithm.filter_groups.enable"),
    derived("algo.dynamic_filtering_enable", "algorithm.filter_groups.enable"),
    derived("dynamic_filtering_reward_range", "algorithm.filter_groups.lower_bound"),
    derived("algo.dynamic_filtering_range", "algorithm.filter_groups.lower_bound"),
    derived("overlong_buffer_len", "algorithm.overlong_buffer.len"),
    derived("overlong_penalty_factor", "algorithm.overlong_buffer.penalty_factor"),
    // The reward
    derived("remote_rm_url", "reward.url or reward.function"),
    derived("reward.remote_url", "reward.url or reward.function"),
    none("agent_func_path", kDiffers, kTurns),
    none("train.agent_func_path", kDiffers, kTurns),
    same("reward_clip_range", "reward.clip"),
    same("reward.clip_range", "reward.clip"),
    none("normalize_reward", kSame, "it is for reward models"),
    none("reward.*", kSame, kRewardModel),
    // Asynchrony
    derived("async_train", "async.max_staleness"),
    derived("train.async_enable", "async.max_staleness"),
    derived("async_queue_size", "async.max_staleness"),
    derived("train.async_queue_size", "async.max_staleness"),
    derived("partial_rollout", "async.partial_rollout"),
    derived("train.partial_rollout_enable", "async.partial_rollout"),
    // The run
    same("seed", "seed"),
    same("train.seed", "seed"),
    none("full_determinism*", kSame, "`async.schedule: fixed_lag` repeats a run to the bit"),
    derived("save_steps", "learner.save_freq"),
    derived("ckpt.save_steps", "learner.save_freq"),
    derived("eval_steps", "learner.test_freq"),
    derived("eval.steps", "learner.test_freq"),
    same("max_ckpt_num", "learner.max_ckpt_to_keep"),
    same("ckpt.max_num", "learner.max_ckpt_to_keep"),
    derived("save_path", "name"),
    derived("ckpt.output_dir", "name"),
    derived("use_wandb", "trackers"),
    derived("logger.wandb.key", "trackers"),
    derived("use_tensorboard", "trackers"),
    derived("logger.tensorboard_dir", "trackers"),
    same("wandb_org", "tracking.entity"),
    same("wandb_group", "tracking.group"),
    same("wandb_project", "tracking.project"),
    same("wandb_run_name", "tracking.run_name"),
    same("logger.wandb.project", "tracking.project"),
    same("logger.wandb.group", "tracking.group"),
    none("logger.*", kSame, kLogs),
    none("logging_steps", kSame, kLogs),
    none("ckpt.*", kSame, kLogs),
    none("ckpt_path", kSame, kLogs),
    none("save_hf_ckpt", kSame, kLogs),
    none("disable_ds_ckpt", kSame, kLogs),
    none("max_ckpt_mem", kSame, kLogs),
    none("load_checkpoint", kSame, "`tandem run --resume RUN` goes on with a run"),
    none("enable_ema", kSame, "no average of the weights is kept"),
    none("ema_beta", kSame, "no average of the weights is kept"),
    none("eval.*", kSame, kLogs),
    none("ref_*", kSame, kLayout),
    none("ref.*", kSame, kLayout),
    none("reward_*", kSame, kLayout),
    none("actor_num_*", kSame, kLayout),
    none("actor.num_*", kSame, kLayout),
    none("actor_init_on_gpu", kSame, kLayout),
    none("colocate_*", kSame, kLayout),
    none("train.colocate_*", kSame, kLayout),
    none("vllm_*", kSame, kEngine),
    none("vllm.*", kSame, kEngine),
    none("rollout.tasks_per_gpu", kSame, kEngine),
    none("rollout_tasks_per_gpu", kSame, kEngine),
    none("enforce_eager", kSame, kEngine),
    none("ds.*", kSame, kLayout),
    none("ds_*", kSame, kLayout),
    none("fsdp*", kSame, kLayout),
    none("deepspeed_*", kSame, kLayout),
    none("zero_stage", kSame, kLayout),
    none("zpg", kSame, kLayout),
    none("adam_offload", kSame, kLayout),
    none("flash_attn", kSame, kLayout),
    none("attn_implementation", kSame, kLayout),
    none("packing_samples", kSame, kLayout),
    none("ring_*", kSame, kLayout),
    none("use_liger_kernel", kSame, kLayout),
    none("grad_accum_dtype", kSame, kLayout),
    none("overlap_comm", kSame, kLayout),
    none("gradient_checkpointing_use_reentrant", kSame, kLayout),
    none("disable_fast_tokenizer", kSame, kLayout),
    none("deepcompile", kSame, kLayout),
    none("local_rank", kSame, kLayout),
    none("perf", kSame, kLogs),
    none("use_ms", kSame, "nothing is downloaded"),
    none("launcher.*", kSame, kLayout),
};

// Of train_ppo_ray's arguments, where Tandem's default is another.
constexpr ForeignDefault kDefaults[] = {
    {"input_key", R"("input")"},
    {"prompt_max_len", "1024"},
    {"generate_max_len", "1024"},
    {"rollout_batch_size", "1024"},
    {"train_batch_size", "128"},
    {"n_samples_per_prompt", "1"},
    {"num_episodes", "1"},
    {"actor_learning_rate", "1e-6"},
    {"lr_warmup_ratio", "0.03"},
    {"lr_scheduler", R"("cosine_with_min_lr")"},
    {"l2", "0.0"},
    {"adam_betas", "[0.9, 0.95]"},
    {"advantage_estimator", R"("gae")"},
    {"policy_loss_type", R"("ppo")"},
    {"eps_clip", "0.2"},
    {"init_kl_coef", "0.01"},
    {"kl_estimator", R"("k1")"},
    {"reward_clip_range", "[-10, 10]"},
    {"eval_temperature", "0.6"},
    {"eval_n_samples_per_prompt", "4"},
    {"save_steps", "-1"},
    {"eval_steps", "-1"},
};

constexpr std::string_view kMarks[] = {"rollout_batch_size",  "rollout.batch_size",
                                       "prompt_data",         "data.prompt_dataset",
                                       "advantage_estimator", "algo.advantage.estimator"};
constexpr std::string_view kPrograms[] = {"openrlhf"};

// The name of a flag that is given, the newer or the older one; else the older, which has a
// default.
std::string_view named(const Draft& draft, std::string_view older, std::string_view newer) {
  return draft.given(newer) ? newer : older;
}

void set_data(Draft& draft) {
  set_model(draft, named(draft, "pretrain", "actor.model_name_or_path"));
  const std::string_view type = named(draft, "param_dtype", "ds.param_dtype");
  if (draft.truth("bf16") || draft.text(type) == "bf16")
    draft.set("model.dtype", "bfloat16", {"bf16", type});
  set_data_files(draft, "data.train_files", named(draft, "prompt_data", "data.prompt_dataset"));
  const std::string_view chat = named(draft, "apply_chat_template", "data.apply_chat_template");
  if (draft.truth(chat)) draft.set("data.prompt_is", "chat", {chat});
  const std::string_view response = named(draft, "generate_max_len", "rollout.max_new_tokens");
  const auto response_tokens = draft.whole(response, 1024);
  draft.set("data.max_response_length", response_tokens, {response});
  const std::string_view total = named(draft, "max_len", "data.max_len");
  if (draft.given(total) && !draft.given("prompt_max_len")) {
    // One length for both: the prompt has what the completion leaves.
    const auto tokens = draft.whole(total, 2048);
    if (!draft.given(response)) draft.set("data.max_response_length", tokens, {total});
    draft.set("data.max_prompt_length", tokens, {total});
    draft.tell(kDiffers, {total},
               "it bounds prompt and completion together, and here each has a bound of its own: "
               "completions may be longer");
  } else {
    draft.set("data.max_prompt_length", draft.whole("prompt_max_len", 1024), {"prompt_max_len"});
  }
  draft.set("data.truncation", "right", {}, "OpenRLHF cuts a longer prompt at its end");
  const std::string_view samples = named(draft, "max_samples", "data.max_samples");
  if (const auto most = draft.number(samples); most && *most < 1e8)
    draft.set("data.max_samples", *most, {samples}, "OpenRLHF takes the first ones");
}

void set_batches(Draft& draft) {
  const std::string_view samples =
      named(draft, "n_samples_per_prompt", "rollout.n_samples_per_prompt");
  const std::string_view batch = named(draft, "rollout_batch_size", "rollout.batch_size");
  const std::string_view update = named(draft, "train_batch_size", "train.batch_size");
  const auto n = std::max<std::int64_t>(draft.whole(samples, 1), 1);
  draft.set("rollout.n", n, {samples});
  const auto completions = draft.whole(update, 128);
  if (completions % n != 0)
    draft.tell(kDiffers, {update},
               "an update of " + std::to_string(completions) +
                   " completions is no whole number of "
                   "prompts with " +
                   std::to_string(n) + " each: it is rounded down");
  set_batch(draft, draft.whole(batch, 1024), std::max<std::int64_t>(completions / n, 1), {batch},
            {update, samples});
}

void set_schedule(Draft& draft) {
  const std::string_view kind = named(draft, "lr_scheduler", "actor.lr_scheduler");
  const std::string name = draft.text(kind);
  const bool constant = name.starts_with("constant");
  const bool cosine = name.starts_with("cosine");
  draft.set("learner.optimizer.lr_scheduler_type",
            constant ? "constant"
            : cosine ? "cosine"
                     : "linear",
            {kind});
  if (!constant && !cosine && name != "linear")
    draft.tell(kDiffers, {kind},
               "the schedule `" + name +
                   "` is not in this version: linear stands "
                   "in its place");
  if (!constant)
    draft.set("learner.optimizer.min_lr_ratio", name == "cosine_with_min_lr" ? 0.1 : 0.0, {kind});
  const std::string_view warmup = named(draft, "lr_warmup_ratio", "actor.lr_warmup_ratio");
  draft.set("learner.optimizer.lr_warmup_steps_ratio", draft.number(warmup).value_or(0.03),
            {warmup});
}

// reinforce, rloo and reinforce_baseline are whitened over the batch; group_norm and dr_grpo are
// not.
void set_estimator(Draft& draft) {
  const std::string_view key = named(draft, "advantage_estimator", "algo.advantage.estimator");
  const std::string_view plain =
      named(draft, "no_advantage_std_norm", "algo.advantage.no_std_norm");
  const std::string name = draft.text(key);
  const bool several = !draft.is("rollout.n", 1);
  if (name == "group_norm" || name == "dr_grpo" || name == "reinforce_baseline") {
    draft.set("algorithm.adv_estimator", "grpo", {key}, name);
    draft.set("algorithm.norm_adv_by_std_in_grpo", name == "group_norm" && !draft.truth(plain),
              {key, plain});
  } else if (name == "rloo") {
    draft.set("algorithm.adv_estimator", "rloo", {key});
  } else {
    draft.set("algorithm.adv_estimator", several && name == "gae" ? "grpo" : "reinforce_plus_plus",
              {key}, name);
  }
  if (name == "gae")
    draft.tell(kDiffers, {key},
               "PPO with a critic (gae, OpenRLHF's default) is not in this version: " +
                   std::string(several ? "grpo" : "reinforce_plus_plus") + " stands in its place");
  if (name == "rloo" || name == "reinforce_baseline")
    draft.set("algorithm.advantage_batch_normalize", true, {key},
              "OpenRLHF whitens over the batch");
  if (draft.truth(plain) && name != "group_norm" && name != "dr_grpo")
    draft.tell(kDiffers, {plain}, "whitening over the batch divides by the standard deviation");
}

void set_loss(Draft& draft) {
  const std::string_view kind = named(draft, "policy_loss_type", "actor.policy_loss_type");
  const bool gspo = draft.text(kind) == "gspo";
  draft.set("algorithm.loss_mode", gspo ? "gspo" : "vanilla", {kind});
  if (!gspo && draft.text(kind) != "ppo")
    draft.tell(kDiffers, {kind},
               "the loss `" + draft.text(kind) +
                   "` is not in this version: the "
                   "clip per token stands in its place");
  const std::string_view one = named(draft, "eps_clip", "actor.eps_clip");
  const std::string_view two = named(draft, "eps_clip_low_high", "actor.eps_clip_low_high");
  const std::string_view dual = named(draft, "dual_clip", "actor.dual_clip");
  const double both = draft.number(one).value_or(0.2);
  Clip clip{both, both, draft.number(dual)};
  const std::vector<std::string> range = draft.texts(two);
  if (range.size() == 2) {
    clip.low = number_of(json(range[0])).value_or(both);
    clip.high = number_of(json(range[1])).value_or(both);
  }
  set_clip(draft, clip, {two, one}, {two, one}, {dual});
}

void set_kl(Draft& draft) {
  const std::string_view weight = named(draft, "init_kl_coef", "algo.kl.init_coef");
  const std::string_view in_loss = named(draft, "use_kl_loss", "algo.kl.use_loss");
  const std::string_view kind = named(draft, "kl_estimator", "algo.kl.estimator");
  const double coefficient = draft.number(weight).value_or(0.01);
  if (coefficient == 0) return;
  if (draft.truth(in_loss)) {
    draft.set("algorithm.use_kl_loss", true, {in_loss});
    draft.set("algorithm.kl_loss_coef", coefficient, {weight});
    draft.set("algorithm.kl_loss_type", draft.text(kind), {kind});
    return;
  }
  draft.set("algorithm.use_kl_in_reward", true, {weight}, "without use_kl_loss");
  draft.set("algorithm.kl_ctrl.kl_coef", coefficient, {weight});
  draft.set("algorithm.kl_penalty", draft.text(kind), {kind});
  if (!draft.is("algorithm.adv_estimator", "reinforce_plus_plus"))
    draft.tell(kDiffers, {weight},
               "OpenRLHF takes the divergence of later tokens from a token's advantage; here a "
               "completion's is taken, beside its mean in the group");
}

void set_correction(Draft& draft) {
  const std::string_view on =
      named(draft, "enable_vllm_is_correction", "algo.advantage.is_correction_enable");
  const std::string_view kind =
      named(draft, "vllm_is_correction_type", "algo.advantage.is_correction_type");
  const std::string_view bound =
      named(draft, "vllm_is_truncated_threshold", "algo.advantage.is_correction_threshold");
  if (!draft.truth(on)) return;
  const std::vector<std::string> bounds = draft.texts(bound);
  const auto at = [&](std::size_t i) {
    return i < bounds.size() ? number_of(json(bounds[i])) : std::nullopt;
  };
  const std::string type = draft.text(kind);
  draft.set("algorithm.bypass_mode", false, {on});
  draft.set("algorithm.rollout_is", "token", {on});
  draft.set("algorithm.rollout_is_threshold",
            at(bounds.size() == 2 ? 1 : 0).value_or(type.empty() || type == "tis" ? 2.0 : 5.0),
            {bound, on});
  if (type != "icepop" && type != "seq-mask-tis") return;
  draft.set("algorithm.rollout_rs", type == "icepop" ? "token" : "geometric", {kind});
  draft.set("algorithm.rollout_rs_threshold", at(1).value_or(5.0), {bound, kind});
  draft.set("algorithm.rollout_rs_threshold_lower", at(0).value_or(0.5), {bound, kind});
}

void set_filter(Draft& draft) {
  const std::string_view on = named(draft, "dynamic_filtering", "algo.dynamic_filtering_enable");
  const std::string_view range =
      named(draft, "dynamic_filtering_reward_range", "algo.dynamic_filtering_range");
  if (draft.truth(on)) {
    const std::vector<std::string> bounds = draft.texts(range);
    draft.set("algorithm.filter_groups.enable", true, {on});
    draft.set("algorithm.filter_groups.lower_bound",
              bounds.size() == 2 ? number_of(json(bounds[0])).value_or(0) : 0, {range, on});
    draft.set("algorithm.filter_groups.upper_bound",
              bounds.size() == 2 ? number_of(json(bounds[1])).value_or(1) : 1, {range, on});
  }
  if (const auto tokens = draft.whole("overlong_buffer_len")) {
    draft.set("algorithm.overlong_buffer.len", *tokens, {"overlong_buffer_len"});
    draft.set("algorithm.overlong_buffer.penalty_factor",
              draft.number("overlong_penalty_factor").value_or(1), {"overlong_penalty_factor"});
  }
}

void set_reward(Draft& draft) {
  const std::string_view key = named(draft, "remote_rm_url", "reward.remote_url");
  const std::string remote = draft.text(key);
  if (remote.ends_with(".py")) {
    draft.set("reward.type", "python", {key});
    draft.set("reward.function", remote + ":reward_func", {key});
    draft.set("reward.signature", "openrlhf", {key});
  } else if (remote.starts_with("http")) {
    draft.set("reward.type", "http", {key});
    draft.set("reward.url", remote.substr(0, remote.find(',')), {key});
    if (remote.find(',') != remote.npos)
      draft.tell(kSame, {key}, "several servers share the work; the first one is taken");
  } else if (draft.given("agent_func_path") || draft.given("train.agent_func_path")) {
    draft.tell(kDiffers, {"agent_func_path"},
               "the reward is given by the agent: set `reward`, whose default compares the whole "
               "completion with the answer");
  } else {
    draft.tell(kDiffers, {key},
               "no reward function or server is named: set `reward`, whose default compares the "
               "whole completion with the answer");
  }
}

void set_run(Draft& draft) {
  const std::string_view saves = named(draft, "save_steps", "ckpt.save_steps");
  draft.set("learner.save_freq", std::max<std::int64_t>(draft.whole(saves, -1), 0), {saves});
  const std::string_view files = named(draft, "eval_dataset", "eval.dataset");
  const std::string_view steps = named(draft, "eval_steps", "eval.steps");
  draft.set("learner.test_freq", std::max<std::int64_t>(draft.whole(steps, -1), 0), {steps});
  if (draft.given(files)) {
    set_data_files(draft, "data.val_files", files);
    const std::string_view n =
        named(draft, "eval_n_samples_per_prompt", "eval.n_samples_per_prompt");
    const std::string_view temperature = named(draft, "eval_temperature", "eval.temperature");
    draft.set("eval.temperature", draft.number(temperature).value_or(0.6), {temperature});
    draft.set("eval.n", draft.whole(n, 4), {n});
  }
  json trackers = json::array();
  if (draft.given("use_tensorboard") || draft.given("logger.tensorboard_dir"))
    trackers.push_back("tensorboard");
  if (draft.given("use_wandb") || draft.given("logger.wandb.key")) trackers.push_back("wandb");
  if (!trackers.empty())
    draft.set("trackers", trackers,
              {"use_wandb", "use_tensorboard", "logger.wandb.key", "logger.tensorboard_dir"});
  const std::string path = draft.text(named(draft, "save_path", "ckpt.output_dir"));
  if (!path.empty())
    draft.set("name", path.substr(path.rfind('/') + 1),
              {named(draft, "save_path", "ckpt.output_dir")});
}

void set_async(Draft& draft) {
  const std::string_view on = named(draft, "async_train", "train.async_enable");
  if (!draft.truth(on)) return set_synchronous(draft);
  const std::string_view queue = named(draft, "async_queue_size", "train.async_queue_size");
  draft.set("async.max_staleness", draft.whole(queue, 1) + 1, {queue, on},
            "a batch in each place of the queue, and one that is generated");
  const std::string_view partial = named(draft, "partial_rollout", "train.partial_rollout_enable");
  draft.set("async.partial_rollout", draft.truth(partial), {partial, on});
  draft.tell(kDiffers, {queue, on},
             "a queue has no bound on the age of what it holds, and `async.max_staleness` is one");
}

void derive(Draft& draft) {
  set_data(draft);
  set_batches(draft);
  set_schedule(draft);
  set_estimator(draft);
  set_loss(draft);
  set_kl(draft);
  set_correction(draft);
  set_filter(draft);
  set_reward(draft);
  set_run(draft);
  set_async(draft);
}

}  // namespace
}  // namespace openrlhf

Dialect openrlhf_dialect() {
  return {"openrlhf",       "OpenRLHF",          openrlhf::kMarks, openrlhf::kPrograms,
          openrlhf::kRules, openrlhf::kDefaults, openrlhf::derive};
}

}  // namespace tandem::translate
