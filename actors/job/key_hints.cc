// Two ways to guess. A table translates names of other systems exactly; it lists whole paths, since
// the same last name means different things in different sections. For a misspelt name of ours the
// edit distance is taken within its section first, because a typing error is more likely than a
// wrong section; then the same last name elsewhere; then over all paths. A last name that another
// system has at the top of its file means the same in any section (`trainer.max_steps`), and one
// that is a part of a neighbour's means that one (`data.epochs`): both are more than a letter or
// two away from what they mean, so that only a slip of one letter comes before them.
// unknown_key_help() has this order.
//
// A foreign name may have no counterpart: its `ours` is then a sentence, which is shown as it is.
// Whole parts of other systems are in kAbsent by the name of their section or key.
#include "actors/job/key_hints.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "actors/job/job_table.h"

namespace tandem::job {
namespace {

// verl's key is a fraction of the samples between two versions, and ours count steps.
constexpr std::string_view kFraction =
    "verl's staleness_threshold s is a fraction of stale samples: with m for "
    "`async.trigger_parameter_sync_step`, `async.lookahead` m (1 + s) - 1 generates as far ahead, "
    "and `async.max_staleness`, no less than that, bounds the age of each sample in versions";

constexpr std::string_view kTrlBatch =
    "TRL counts completions of a device: `data.train_batch_size` is the number of prompts of a "
    "step, each with `rollout.n` completions, over all processes";
constexpr std::string_view kAccumulation =
    "gradients are accumulated without a key for it: a rank packs whole sequences into passes of "
    "at "
    "most `learner.max_token_len` tokens, and an optimizer step is `learner.ppo_mini_batch_size` "
    "groups, however many passes they take";
constexpr std::string_view kEvalStrategy =
    "`learner.test_freq` is the number of steps between evaluations, which are of "
    "`data.val_files`; 0: none amid the run";
constexpr std::string_view kRewardRange =
    "a range of two is two keys here: `algorithm.filter_groups.lower_bound` and `upper_bound`, "
    "both "
    "excluded, beside `algorithm.filter_groups.enable`";
constexpr std::string_view kSaveSeconds =
    "`learner.save_every_minutes` is the time between checkpoints, in minutes";
constexpr std::string_view kSequencesNotGroups =
    "this counts completions: `data.train_batch_size` is the number of prompts of a step, and "
    "`learner.ppo_mini_batch_size` that of an optimizer step, each with `rollout.n` completions";
constexpr std::string_view kSystemTemplate =
    "OpenRLHF's input_template wraps each text: give the model its chat template by "
    "`data.prompt_is: "
    "chat`, with `data.system_prompt`, or write the whole prompt into the data";
constexpr std::string_view kNoImages =
    "models of this version get text alone: a record with images, videos or audio is refused";
constexpr std::string_view kColumns =
    "a reward gets all columns of a record; `data.extra_keys` keeps those that it lists alone";
constexpr std::string_view kRawChat =
    "this needs no key: a reward gets the prompt's text, and a conversation also as `messages`";
constexpr std::string_view kOutput =
    "each run has a folder of its own below TANDEM_HOME/runs, with its metrics and checkpoints";

// Keys of other systems, in groups by system. `ours` may also be a key that refuses most values in
// this version, such as actors.NAME.gpus_per_actor: the user then reads why.
constexpr std::string_view kVerlFunction =
    "verl's custom_reward_function is `reward: { type: python, function: FILE.py:NAME }` here, "
    "with "
    "the function as it is";
constexpr std::string_view kRolloutDtype =
    "`model.dtype` is of learner and engine; a server of vLLM or SGLang may have another one, by "
    "`rollout.dtype`";
constexpr std::string_view kArealReward =
    "AReaL pays (reward + reward_bias) * reward_scaling: `reward.scale` is its reward_scaling, and "
    "`reward.bias` is the product of both";

constexpr ForeignKey kForeign[] = {
    {"verl", "actor_rollout_ref.model.path", "model.path"},
    {"verl", "actor_rollout_ref.model.enable_gradient_checkpointing",
     "learner.enable_gradient_checkpointing"},
    {"verl", "actor_rollout_ref.rollout.name", "rollout.name"},
    {"verl", "actor_rollout_ref.rollout.n", "rollout.n"},
    {"verl", "actor_rollout_ref.rollout.temperature", "rollout.temperature"},
    {"verl", "actor_rollout_ref.rollout.top_p", "rollout.top_p"},
    {"verl", "actor_rollout_ref.rollout.top_k", "rollout.top_k"},
    {"verl", "actor_rollout_ref.rollout.dtype", kRolloutDtype},
    {"verl", "actor_rollout_ref.rollout.prompt_length", "data.max_prompt_length"},
    {"verl", "actor_rollout_ref.rollout.response_length", "data.max_response_length"},
    {"verl", "actor_rollout_ref.rollout.tensor_model_parallel_size",
     "rollout.tensor_model_parallel_size"},
    {"verl", "actor_rollout_ref.rollout.gpu_memory_utilization", "rollout.gpu_memory_utilization"},
    {"verl", "actor_rollout_ref.rollout.max_num_seqs", "rollout.max_num_seqs"},
    {"verl", "actor_rollout_ref.rollout.max_num_batched_tokens", "rollout.max_num_batched_tokens"},
    {"verl", "actor_rollout_ref.rollout.enable_prefix_caching", "rollout.enable_prefix_caching"},
    {"verl", "actor_rollout_ref.rollout.cudagraph_capture_sizes",
     "rollout.cudagraph_capture_sizes"},
    {"verl", "actor_rollout_ref.rollout.val_kwargs.n", "eval.n"},
    {"verl", "actor_rollout_ref.rollout.val_kwargs.temperature", "eval.temperature"},
    {"verl", "actor_rollout_ref.rollout.val_kwargs.top_p", "eval.top_p"},
    {"verl", "actor_rollout_ref.rollout.val_kwargs.top_k", "eval.top_k"},
    {"verl", "actor_rollout_ref.rollout.val_kwargs.do_sample", "eval.temperature"},
    {"verl", "actor_rollout_ref.actor.optim.lr", "learner.optimizer.lr"},
    {"verl", "actor_rollout_ref.actor.optim.lr_warmup_steps", "learner.optimizer.lr_warmup_steps"},
    {"verl", "actor_rollout_ref.actor.optim.lr_warmup_steps_ratio",
     "learner.optimizer.lr_warmup_steps_ratio"},
    {"verl", "actor_rollout_ref.actor.optim.total_training_steps", "learner.total_training_steps"},
    {"verl", "actor_rollout_ref.actor.optim.lr_scheduler_type",
     "learner.optimizer.lr_scheduler_type"},
    {"verl", "actor_rollout_ref.actor.optim.min_lr_ratio", "learner.optimizer.min_lr_ratio"},
    {"verl", "actor_rollout_ref.actor.optim.weight_decay", "learner.optimizer.weight_decay"},
    {"verl", "actor_rollout_ref.actor.optim.betas", "learner.optimizer.betas"},
    {"verl", "actor_rollout_ref.actor.optim.clip_grad", "learner.optimizer.grad_clip"},
    {"verl", "actor_rollout_ref.actor.grad_clip", "learner.optimizer.grad_clip"},
    {"verl", "actor_rollout_ref.actor.clip_ratio", "algorithm.clip_ratio_low"},
    {"verl", "actor_rollout_ref.actor.clip_ratio_low", "algorithm.clip_ratio_low"},
    {"verl", "actor_rollout_ref.actor.clip_ratio_high", "algorithm.clip_ratio_high"},
    {"verl", "actor_rollout_ref.actor.clip_ratio_c", "algorithm.clip_ratio_c"},
    {"verl", "actor_rollout_ref.actor.entropy_coeff", "algorithm.entropy_coeff"},
    {"verl", "actor_rollout_ref.actor.use_kl_loss", "algorithm.use_kl_loss"},
    {"verl", "actor_rollout_ref.actor.kl_loss_coef", "algorithm.kl_loss_coef"},
    {"verl", "actor_rollout_ref.actor.kl_loss_type", "algorithm.kl_loss_type"},
    {"verl", "actor_rollout_ref.actor.loss_agg_mode", "algorithm.loss_agg_mode"},
    {"verl", "actor_rollout_ref.actor.policy_loss.loss_mode", "algorithm.loss_mode"},
    {"verl", "actor_rollout_ref.actor.ppo_mini_batch_size", "learner.ppo_mini_batch_size"},
    {"verl", "actor_rollout_ref.actor.ppo_epochs", "learner.ppo_epochs"},
    {"verl", "actor_rollout_ref.actor.ppo_micro_batch_size", kAccumulation},
    {"verl", "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu", kAccumulation},
    {"verl", "actor_rollout_ref.actor.use_dynamic_bsz", kAccumulation},
    {"verl", "actor_rollout_ref.actor.ppo_max_token_len_per_gpu", "learner.max_token_len"},
    {"verl", "algorithm.rollout_correction.rollout_is", "algorithm.rollout_is"},
    {"verl", "algorithm.rollout_correction.rollout_is_threshold", "algorithm.rollout_is_threshold"},
    {"verl", "algorithm.rollout_correction.rollout_rs", "algorithm.rollout_rs"},
    {"verl", "algorithm.rollout_correction.rollout_rs_threshold", "algorithm.rollout_rs_threshold"},
    {"verl", "algorithm.rollout_correction.rollout_rs_threshold_lower",
     "algorithm.rollout_rs_threshold_lower"},
    {"verl", "algorithm.rollout_correction.rollout_is_batch_normalize",
     "algorithm.rollout_is_batch_normalize"},
    {"verl", "algorithm.rollout_correction.rollout_token_veto_threshold",
     "algorithm.rollout_token_veto_threshold"},
    {"verl", "algorithm.rollout_correction.bypass_mode", "algorithm.bypass_mode"},
    {"verl", "data.filter_accuracy", "algorithm.filter_groups.enable"},
    {"verl", "data.accuracy_lower_bound", "algorithm.filter_groups.lower_bound"},
    {"verl", "data.accuracy_upper_bound", "algorithm.filter_groups.upper_bound"},
    {"verl", "reward_model.overlong_buffer.len", "algorithm.overlong_buffer.len"},
    {"verl", "reward_model.overlong_buffer.penalty_factor",
     "algorithm.overlong_buffer.penalty_factor"},
    {"verl", "data.train_max_samples", "data.max_samples"},
    {"verl", "data.val_max_samples", "data.max_val_samples"},
    {"verl", "data.reward_fn_key", "data.data_source_key"},
    {"verl", "data.seed", "seed"},
    {"verl", "data.return_raw_chat", kRawChat},
    {"verl", "data.return_full_prompt", kRawChat},
    {"verl", "data.image_key", kNoImages},
    {"verl", "data.video_key", kNoImages},
    {"verl", "data.apply_chat_template_kwargs.enable_thinking", "data.enable_thinking"},
    {"verl", "data.filter_overlong_prompts_workers",
     "prompts are filtered as they are read; verl's number of workers has no counterpart"},
    {"verl", "data.val_batch_size",
     "an evaluation is of all of `data.val_files` at once, or of `data.max_val_samples` of them"},
    {"verl", "trainer.total_epochs", "data.total_epochs"},
    {"verl", "custom_reward_function.path", kVerlFunction},
    {"verl", "custom_reward_function.name", kVerlFunction},
    {"verl", "reward.custom_reward_function.path", kVerlFunction},
    {"verl", "reward.custom_reward_function.name", kVerlFunction},
    {"verl", "trainer.total_training_steps", "learner.total_training_steps"},
    {"verl", "trainer.save_freq", "learner.save_freq"},
    {"verl", "trainer.test_freq", "learner.test_freq"},
    {"verl", "trainer.total_epochs", "data.total_epochs"},
    {"verl", "trainer.val_before_train", "learner.val_before_train"},
    {"verl", "trainer.resume_mode", "learner.resume_mode"},
    {"verl", "trainer.max_actor_ckpt_to_keep", "learner.max_ckpt_to_keep"},
    {"verl", "trainer.experiment_name", "name"},
    {"verl", "trainer.logger", "trackers"},
    {"verl", "trainer.project_name", "tracking.project"},
    {"verl", "async_training.trigger_parameter_sync_step", "async.trigger_parameter_sync_step"},
    {"verl", "async_training.partial_rollout", "async.partial_rollout"},
    {"verl", "async_training.staleness_threshold", kFraction},
    {"verl", "async.staleness_threshold", kFraction},
    {"verl", "staleness_threshold", kFraction},
    {"AReaL", "experiment_name", "name"},
    {"AReaL", "actor.path", "model.path"},
    {"AReaL", "actor.dtype", "model.dtype"},
    {"AReaL", "actor.gradient_checkpointing", "learner.enable_gradient_checkpointing"},
    {"AReaL", "actor.optimizer.lr", "learner.optimizer.lr"},
    {"AReaL", "actor.optimizer.weight_decay", "learner.optimizer.weight_decay"},
    {"AReaL", "actor.optimizer.gradient_clipping", "learner.optimizer.grad_clip"},
    {"AReaL", "actor.optimizer.lr_scheduler_type", "learner.optimizer.lr_scheduler_type"},
    {"AReaL", "actor.eps_clip", "algorithm.clip_ratio_low"},
    {"AReaL", "actor.eps_clip_higher", "algorithm.clip_ratio_high"},
    {"AReaL", "actor.c_clip", "algorithm.clip_ratio_c"},
    {"AReaL", "actor.kl_ctl", "algorithm.kl_loss_coef"},
    {"AReaL", "actor.use_decoupled_loss", "algorithm.bypass_mode"},
    {"AReaL", "actor.reward_scaling", kArealReward},
    {"AReaL", "actor.reward_bias", kArealReward},
    {"AReaL", "actor.reward_clip", "AReaL's reward_clip c is `reward.clip: [-c, c]` here"},
    {"AReaL", "gconfig.n_samples", "rollout.n"},
    {"AReaL", "gconfig.max_new_tokens", "data.max_response_length"},
    {"AReaL", "gconfig.min_new_tokens", "rollout.min_tokens"},
    {"AReaL", "gconfig.temperature", "rollout.temperature"},
    {"AReaL", "rollout.max_head_offpolicyness", "async.max_staleness"},
    {"AReaL", "rollout.max_concurrent_rollouts", "async.max_concurrent_rollouts"},
    {"AReaL", "rollout.consumer_batch_size", "data.train_batch_size"},
    {"AReaL", "train_dataset.path", "data.train_files"},
    {"AReaL", "train_dataset.batch_size", "data.train_batch_size"},
    {"AReaL", "valid_dataset.path", "data.val_files"},
    {"AReaL", "saver.freq_steps", "learner.save_freq"},
    {"AReaL", "evaluator.freq_steps", "learner.test_freq"},
    {"AReaL", "total_train_steps", "learner.total_training_steps"},
    {"AReaL", "total_train_epochs", "data.total_epochs"},
    {"AReaL", "saver.freq_epochs", "learner.save_every_epochs"},
    {"AReaL", "saver.freq_secs", kSaveSeconds},
    {"AReaL", "actor.optimizer.warmup_steps_proportion", "learner.optimizer.lr_warmup_steps_ratio"},
    {"AReaL", "actor.adv_norm.mean_level", "algorithm.advantage_batch_normalize"},
    {"AReaL", "actor.adv_norm.std_level", "algorithm.scale_rewards"},
    {"AReaL", "actor.rejection_sampling.level", "algorithm.rollout_rs"},
    {"AReaL", "actor.rejection_sampling.upper", "algorithm.rollout_rs_threshold"},
    {"AReaL", "actor.rejection_sampling.lower", "algorithm.rollout_rs_threshold_lower"},
    {"AReaL", "actor.ppo_n_minibatches",
     "`learner.ppo_mini_batch_size` is the size of a mini-batch, in groups, not their number"},
    {"OpenRLHF", "pretrain", "model.path"},
    {"OpenRLHF", "prompt_data", "data.train_files"},
    {"OpenRLHF", "input_key", "data.prompt_key"},
    {"OpenRLHF", "label_key", "data.answer_key"},
    {"OpenRLHF", "prompt_data_probs", "data.mixture"},
    {"OpenRLHF", "eval_dataset", "data.val_files"},
    {"OpenRLHF", "apply_chat_template", "data.prompt_is"},
    {"OpenRLHF", "input_template", kSystemTemplate},
    {"OpenRLHF", "max_samples", "data.max_samples"},
    {"OpenRLHF", "num_episodes", "data.total_epochs"},
    {"OpenRLHF", "remote_rm_url",
     "OpenRLHF's remote_rm_url is `reward.url` here, with `reward.type: http`; its file with a "
     "reward_func is `reward.function: FILE.py:reward_func`, with `reward.type: python`"},
    {"OpenRLHF", "reward.remote_url", "reward.url"},
    {"OpenRLHF", "reward_clip_range", "reward.clip"},
    {"OpenRLHF", "prompt_max_len", "data.max_prompt_length"},
    {"OpenRLHF", "generate_max_len", "data.max_response_length"},
    {"OpenRLHF", "rollout_batch_size", "data.train_batch_size"},
    {"OpenRLHF", "train_batch_size", "data.train_batch_size"},
    {"OpenRLHF", "n_samples_per_prompt", "rollout.n"},
    {"OpenRLHF", "actor_learning_rate", "learner.optimizer.lr"},
    {"OpenRLHF", "init_kl_coef", "algorithm.kl_loss_coef"},
    {"OpenRLHF", "eps_clip", "algorithm.clip_ratio_low"},
    {"OpenRLHF", "advantage_estimator", "algorithm.adv_estimator"},
    {"OpenRLHF", "vllm_num_engines", "rollout.replicas"},
    {"OpenRLHF", "vllm_tensor_parallel_size", "rollout.tensor_model_parallel_size"},
    {"OpenRLHF", "vllm_gpu_memory_utilization", "rollout.gpu_memory_utilization"},
    {"OpenRLHF", "enable_prefix_caching", "rollout.enable_prefix_caching"},
    {"OpenRLHF", "micro_train_batch_size", kAccumulation},
    {"OpenRLHF", "num_episodes", "data.total_epochs"},
    {"OpenRLHF", "max_epochs", "learner.ppo_epochs"},
    {"OpenRLHF", "lr_warmup_ratio", "learner.optimizer.lr_warmup_steps_ratio"},
    {"OpenRLHF", "dynamic_filtering", "algorithm.filter_groups.enable"},
    {"OpenRLHF", "dynamic_filtering_reward_range", kRewardRange},
    {"OpenRLHF", "enable_vllm_is_correction", "algorithm.rollout_is"},
    {"OpenRLHF", "no_advantage_std_norm", "algorithm.scale_rewards"},
    {"OpenRLHF", "save_steps", "learner.save_freq"},
    {"OpenRLHF", "eval_steps", "learner.test_freq"},
    {"OpenRLHF", "eval_n_samples_per_prompt", "eval.n"},
    {"OpenRLHF", "eval_temperature", "eval.temperature"},
    {"OpenRLHF", "max_ckpt_num", "learner.max_ckpt_to_keep"},
    {"OpenRLHF", "train.async_queue_size", "async.lookahead"},
    {"OpenRLHF", "async_queue_size", "async.lookahead"},
    {"TRL", "use_vllm", "rollout.name"},
    {"TRL", "vllm_mode", "rollout.engine.url"},
    {"TRL", "model_name_or_path", "model.path"},
    {"TRL", "max_prompt_length", "data.max_prompt_length"},
    {"open-r1", "system_prompt", "data.system_prompt"},
    {"open-r1", "dataset_prompt_column", "data.prompt_key"},
    {"open-r1", "dataset_mixture", "data.mixture"},
    {"TRL", "remove_unused_columns", kColumns},
    {"TRL", "dataset_name", "data.train_files"},
    {"TRL", "max_completion_length", "data.max_response_length"},
    {"TRL", "num_train_epochs", "data.total_epochs"},
    {"TRL", "max_steps", "learner.total_training_steps"},
    {"TRL", "num_generations", "rollout.n"},
    {"TRL", "num_generations_eval", "eval.n"},
    {"TRL", "generation_batch_size", kTrlBatch},
    {"TRL", "per_device_train_batch_size", kTrlBatch},
    {"TRL", "gradient_accumulation_steps", kTrlBatch},
    {"TRL", "num_iterations", "learner.ppo_epochs"},
    {"TRL", "learning_rate", "learner.optimizer.lr"},
    {"TRL", "warmup_steps", "learner.optimizer.lr_warmup_steps"},
    {"TRL", "warmup_ratio", "learner.optimizer.lr_warmup_steps_ratio"},
    {"TRL", "adam_beta1", "learner.optimizer.betas"},
    {"TRL", "adam_beta2", "learner.optimizer.betas"},
    {"TRL", "adam_epsilon", "learner.optimizer.eps"},
    {"TRL", "max_grad_norm", "learner.optimizer.grad_clip"},
    {"TRL", "gradient_checkpointing", "learner.enable_gradient_checkpointing"},
    {"TRL", "bf16", "model.dtype"},
    {"TRL", "beta", "algorithm.kl_loss_coef"},
    {"TRL", "epsilon", "algorithm.clip_ratio_low"},
    {"TRL", "epsilon_high", "algorithm.clip_ratio_high"},
    {"TRL", "delta", "algorithm.clip_ratio_c"},
    {"TRL", "loss_type", "algorithm.loss_agg_mode"},
    {"TRL", "scale_rewards", "algorithm.scale_rewards"},
    {"TRL", "normalize_advantages", "algorithm.advantage_batch_normalize"},
    {"TRL", "eval_on_start", "learner.val_before_train"},
    {"TRL", "eval_strategy", kEvalStrategy},
    {"TRL", "evaluation_strategy", kEvalStrategy},
    {"TRL", "save_steps", "learner.save_freq"},
    {"TRL", "save_strategy",
     "`learner.save_freq` counts steps and `learner.save_every_epochs` epochs"},
    {"TRL", "greater_is_better", "learner.keep_best_mode"},
    {"TRL", "vllm_importance_sampling_correction", "algorithm.rollout_is"},
    {"TRL", "vllm_importance_sampling_mode",
     "`algorithm.rollout_is` truncates weights, and `algorithm.rollout_rs` rejects tokens or "
     "sequences (TRL's …_mask)"},
    {"TRL", "vllm_importance_sampling_cap", "algorithm.rollout_is_threshold"},
    {"TRL", "importance_sampling_level", "algorithm.loss_mode"},
    {"TRL", "reward_funcs",
     "TRL's reward_funcs are parts of the reward here: `reward: [{ name: right, type: python, "
     "function: FILE.py:NAME }, …]`, with the function as it is"},
    {"TRL", "reward_weights", "TRL's reward_weights are the key `weight` of each part of `reward`"},
    {"TRL", "shuffle_dataset", "data.shuffle"},
    {"TRL", "save_total_limit", "learner.max_ckpt_to_keep"},
    {"TRL", "load_best_model_at_end", "learner.keep_best"},
    {"TRL", "metric_for_best_model", "learner.keep_best"},
    {"TRL", "resume_from_checkpoint", "`tandem run --resume RUN` goes on with a run"},
    {"TRL", "output_dir", kOutput},
    {"TRL", "logging_dir", kOutput},
    {"NeMo-RL", "grpo.num_prompts_per_step", "data.train_batch_size"},
    {"NeMo-RL", "grpo.num_generations_per_prompt", "rollout.n"},
    {"NeMo-RL", "grpo.max_num_steps", "learner.total_training_steps"},
    {"NeMo-RL", "grpo.max_num_epochs", "data.total_epochs"},
    {"NeMo-RL", "grpo.val_period", "learner.test_freq"},
    {"NeMo-RL", "grpo.val_at_start", "learner.val_before_train"},
    {"NeMo-RL", "grpo.normalize_rewards", "algorithm.scale_rewards"},
    {"NeMo-RL", "grpo.use_leave_one_out_baseline", "algorithm.adv_estimator"},
    {"NeMo-RL", "grpo.use_dynamic_sampling", "algorithm.filter_groups.enable"},
    {"NeMo-RL", "grpo.dynamic_sampling_max_gen_batches",
     "algorithm.filter_groups.max_num_gen_batches"},
    {"NeMo-RL", "grpo.overlong_filtering", "algorithm.mask_truncated_completions"},
    {"NeMo-RL", "checkpointing.save_period", "learner.save_freq"},
    {"NeMo-RL", "checkpointing.keep_top_k", "learner.max_ckpt_to_keep"},
    {"NeMo-RL", "checkpointing.metric_name", "learner.keep_best"},
    {"NeMo-RL", "checkpointing.higher_is_better", "learner.keep_best_mode"},
    {"NeMo-RL", "policy.train_global_batch_size", kSequencesNotGroups},
    {"NeMo-RL", "policy.train_micro_batch_size", kAccumulation},
    {"NeMo-RL", "policy.max_grad_norm", "learner.optimizer.grad_clip"},
    {"SkyRL", "trainer.eval_before_train", "learner.val_before_train"},
    {"SkyRL", "trainer.eval_interval", "learner.test_freq"},
    {"SkyRL", "trainer.ckpt_interval", "learner.save_freq"},
    {"SkyRL", "trainer.epochs", "data.total_epochs"},
    {"SkyRL", "trainer.policy_mini_batch_size", "learner.ppo_mini_batch_size"},
    {"SkyRL", "trainer.micro_train_batch_size_per_gpu", kAccumulation},
    {"SkyRL", "trainer.algorithm.advantage_batch_normalize", "algorithm.advantage_batch_normalize"},
    {"SkyRL", "trainer.algorithm.dynamic_sampling.type", "algorithm.filter_groups.enable"},
    {"prime-rl", "ckpt.interval", "learner.save_freq"},
    {"prime-rl", "eval.interval", "learner.test_freq"},
    {"prime-rl", "eval.eval_base_model", "learner.val_before_train"},
    {"TRL", "report_to", "trackers"},
    {"TRL", "run_name", "tracking.run_name"},
    {"OpenRLHF", "wandb_project", "tracking.project"},
    {"OpenRLHF", "wandb_group", "tracking.group"},
    {"OpenRLHF", "wandb_org", "tracking.entity"},
    {"OpenRLHF", "wandb_run_name", "tracking.run_name"},
    {"NeMo-RL", "logger.wandb_enabled", "trackers"},
    {"NeMo-RL", "logger.tensorboard_enabled", "trackers"},
    {"NeMo-RL", "logger.wandb.project", "tracking.project"},
    {"NeMo-RL", "logger.wandb.name", "tracking.run_name"},
    {"wandb", "wandb.project", "tracking.project"},
    {"wandb", "wandb.entity", "tracking.entity"},
    {"wandb", "wandb.name", "tracking.run_name"},
    {"wandb", "wandb.group", "tracking.group"},
    {"wandb", "wandb.tags", "tracking.tags"},
    {"wandb", "wandb.notes", "tracking.notes"},
};

constexpr std::string_view kNoAdapters =
    "adapters are not in this version: all parameters are trained (section `learner.optimizer`)";
constexpr std::string_view kNoLogger =
    "`trackers` chooses tensorboard and wandb in this version, and section `tracking` has the "
    "project, group, tags and notes; other trackers can read metrics.jsonl or the CSV of `tandem "
    "metrics`";
constexpr std::string_view kNoSharding =
    "this is not in this version: the learner is Tandem's own, and `learner.ranks` splits each "
    "batch over processes";
constexpr std::string_view kNoCritic =
    "a critic is not in this version: `algorithm.adv_estimator` names the estimators that need "
    "none";
constexpr std::string_view kNoTurns =
    "turns and tools are not in this version: a prompt has one completion";

constexpr AbsentThing kAbsent[] = {
    {"lora", kNoAdapters},         {"lora_rank", kNoAdapters},   {"lora_alpha", kNoAdapters},
    {"lora_r", kNoAdapters},       {"lora_config", kNoAdapters}, {"peft", kNoAdapters},
    {"peft_config", kNoAdapters},  {"use_peft", kNoAdapters},    {"qlora", kNoAdapters},
    {"load_in_4bit", kNoAdapters}, {"wandb", kNoLogger},         {"wandb_project", kNoLogger},
    {"use_wandb", kNoLogger},      {"report_to", kNoLogger},     {"logger", kNoLogger},
    {"loggers", kNoLogger},        {"stats_logger", kNoLogger},  {"trackio", kNoLogger},
    {"swanlab", kNoLogger},        {"mlflow", kNoLogger},        {"use_tensorboard", kNoLogger},
    {"project_name", kNoLogger},   {"deepspeed", kNoSharding},   {"fsdp", kNoSharding},
    {"fsdp_config", kNoSharding},  {"megatron", kNoSharding},    {"zero_stage", kNoSharding},
    {"accelerate", kNoSharding},   {"critic", kNoCritic},        {"value_model", kNoCritic},
    {"multi_turn", kNoTurns},      {"tools", kNoTurns},          {"environment", kNoTurns},
};

// Names that are no other system's and are often tried, where no rule below finds what they mean.
constexpr ForeignKey kTried[] = {
    {"", "learner.epochs", "data.total_epochs"},
    {"", "learner.gradient_accumulation_steps", kAccumulation},
};

// The foreign key with exactly this path, or nullptr.
const ForeignKey* find_foreign(std::string_view path) {
  const auto at = std::ranges::find(kForeign, path, &ForeignKey::name);
  return at == std::end(kForeign) ? nullptr : at;
}

// Finds the absent thing that a part of `path` names, the first such part first; nullptr if no part
// does.
const AbsentThing* find_absent(std::string_view path) {
  for (;;) {
    const std::size_t dot = path.find('.');
    const auto at = std::ranges::find(kAbsent, path.substr(0, dot), &AbsentThing::name);
    if (at != std::end(kAbsent)) return at;
    if (dot == path.npos) return nullptr;
    path.remove_prefix(dot + 1);
  }
}

std::string ticked(std::string_view name) { return "`" + std::string(name) + "`"; }

// Keys of ours with the same last name in other sections: `lr` or `rollout.lr` finds
// learner.optimizer.lr.
std::string same_name_elsewhere(std::string_view path) {
  std::string found;
  for (const Key& key : job_keys())
    if (last_part(key.path) == last_part(path))
      found += (found.empty() ? "" : " or ") + ticked(key.path);
  return found;
}

std::vector<std::string_view> all_names() {
  std::vector<std::string_view> names;
  for (const Section& section : job_sections()) names.push_back(section.path);
  for (const Key& key : job_keys()) {
    names.push_back(key.path);
    names.insert(names.end(), key.aliases.begin(), key.aliases.end());
  }
  return names;
}

std::string asked_whether(const std::string& ticked_names) {
  return "did you mean " + ticked_names + "?";
}

// The last parts of the names in the section of `path`, and the whole name of one of them.
std::vector<std::string_view> siblings_of(std::string_view path) {
  std::vector<std::string_view> parts;
  for (const std::string_view name : all_names())
    if (section_of(name) == section_of(path)) parts.push_back(last_part(name));
  return parts;
}
std::string ticked_sibling(std::string_view path, std::string_view part) {
  const std::string_view section = section_of(path);
  return ticked((section.empty() ? "" : std::string(section) + ".") + std::string(part));
}

// Whether the words of `part` are among those of `whole`, in one piece: "epochs" in "total_epochs".
bool has_words(std::string_view whole, std::string_view part) {
  return ("_" + std::string(whole) + "_").find("_" + std::string(part) + "_") != std::string::npos;
}

// Siblings of which the last part of `path` is a piece: `data.epochs` finds data.total_epochs.
std::string longer_siblings(std::string_view path) {
  constexpr int kNamesMax = 3;
  std::string found;
  int names = 0;
  for (const std::string_view part : siblings_of(path))
    if (!section_of(path).empty() && has_words(part, last_part(path)) && ++names <= kNamesMax)
      found += (found.empty() ? "" : " or ") + ticked_sibling(path, part);
  return names <= kNamesMax ? found : "";
}

// The key of another system that has the last part of `path` as its whole name: `trainer.max_steps`
// leads to TRL's `max_steps`. Null where there is none.
const ForeignKey* find_foreign_last(std::string_view path) {
  return section_of(path).empty() ? nullptr : find_foreign(last_part(path));
}

}  // namespace

std::span<const ForeignKey> foreign_keys() { return kForeign; }

std::span<const AbsentThing> absent_things() { return kAbsent; }

bool is_foreign(std::string_view path) { return find_foreign(path) || find_absent(path); }

// The optimal string alignment distance: Levenshtein's with swaps of neighbours. Three rows of the
// matrix are kept: a swap looks two rows back.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  std::iota(above.begin(), above.end(), 0u);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

std::optional<std::string_view> nearest(std::string_view word,
                                        std::span<const std::string_view> candidates) {
  std::optional<std::string_view> best;
  // One more than the greatest distance that counts as a typing error, since `d < distance` is
  // asked.
  std::size_t distance = (word.size() < 4 ? 1 : std::max<std::size_t>(2, word.size() / 4)) + 1;
  for (const std::string_view candidate : candidates)
    if (const std::size_t d = edit_distance(word, candidate);
        // A word that shares no letter with the candidate has the distance of the longer one.
        d < distance && d < std::max(word.size(), candidate.size())) {
      best = candidate;
      distance = d;
    }
  return best;
}

std::string unknown_key_help(std::string_view path) {
  const auto is_sentence = [](std::string_view ours) { return ours.find(' ') != ours.npos; };
  if (const ForeignKey* foreign = find_foreign(path)) {
    if (is_sentence(foreign->ours)) return std::string(foreign->ours);
    return std::string(foreign->system) + "'s " + ticked(path) + " is " + ticked(foreign->ours) +
           " here";
  }
  if (const AbsentThing* absent = find_absent(path)) return std::string(absent->instead);
  const auto parts = siblings_of(path);
  const auto sibling = nearest(last_part(path), parts);
  if (sibling && edit_distance(last_part(path), *sibling) == 1)
    return asked_whether(ticked_sibling(path, *sibling));
  const auto tried = std::ranges::find(kTried, path, &ForeignKey::name);
  const ForeignKey* meant = tried != std::end(kTried) ? tried : find_foreign_last(path);
  if (meant && is_sentence(meant->ours)) return std::string(meant->ours);
  if (meant) return asked_whether(ticked(meant->ours));
  if (const std::string longer = longer_siblings(path); !longer.empty())
    return asked_whether(longer);
  if (sibling) return asked_whether(ticked_sibling(path, *sibling));
  if (const std::string elsewhere = same_name_elsewhere(path); !elsewhere.empty())
    return asked_whether(elsewhere);
  if (const auto near = nearest(path, all_names())) return asked_whether(ticked(*near));
  if (last_part(path) == "staleness_threshold") return std::string(kFraction);
  const Section* section = find_section(section_of(path));
  return "`tandem explain" + (section ? " " + std::string(section->path) : std::string()) +
         "` lists the keys";
}

}  // namespace tandem::job
