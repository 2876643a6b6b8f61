// TRL's GRPO, as the YAML of open-r1's recipes or as flags. TRL counts completions of one device:
//
//   completions of an update  per_device_train_batch_size * gradient_accumulation_steps * processes
//   completions of a step     the same with steps_per_generation in place of the accumulation, or
//                             generation_batch_size
//   prompts                   completions / num_generations
//
// Its steps are updates and the job's steps are batches, so that numbers of steps are divided by
// the updates of a batch. Without a number of processes one is taken, and told.
#include <algorithm>
#include <cmath>

#include "actors/translate/draft.h"
#include "actors/translate/frameworks.h"
#include "actors/translate/shared_keys.h"
#include "actors/translate/shared_rules.h"
#include "runtime/base/json.h"

namespace tandem::translate {
namespace trl {
namespace {

using nlohmann::json;
using enum Severity;

constexpr std::string_view kReference =
    "the divergence is from the weights at the start, which stay the same";
constexpr std::string_view kReward = "a setting of reward functions: write it into the function";

constexpr std::string_view kMixture =
    "name the files of the data sets in `data.train_files`, and their weights in `data.mixture`";

constexpr Rule kRules[] = {
    derived("model_name_or_path", "model.path"),
    derived("bf16", "model.dtype"),
    derived("torch_dtype", "model.dtype"),
    derived("dtype", "model.dtype"),
    none("fp16", kDiffers, "float16 is not in this version: the model computes in bfloat16",
         "false"),
    same("gradient_checkpointing", "learner.enable_gradient_checkpointing"),
    none("model_revision", kSame, "the folder's files are the revision that you download", "main"),
    none("model_init_kwargs*", kDiffers, "the model is as its directory says"),
    none("trust_remote_code", kSame,
         "no code of a model is run; unknown architectures are refused"),
    none("attn_implementation", kSame, kLayout),
    none("use_peft", kDiffers, kAdapters, "false"),
    none("lora_*", kSame, kAdapters),
    none("load_in_*", kDiffers, kAdapters, "false"),
    none("tokenizer_name_or_path", kDiffers, "the tokenizer is that of the model's directory"),
    derived("chat_template", "data.chat_template"),
    // The data
    derived("dataset_name", "data.train_files"),
    none("dataset_mixture*", kDiffers, kMixture),
    none("datasets*", kDiffers, kMixture),
    none("dataset_config", kSame, "the folder's files are the configuration that you download"),
    none("dataset_train_split", kSame, "of a folder the train split is taken", "train"),
    none("dataset_test_split", kSame, "of a folder the validation or test split is taken", "test"),
    same("dataset_prompt_column", "data.prompt_key"),
    derived("system_prompt", "data.system_prompt"),
    same("chat_template_kwargs", "data.chat_template_kwargs"),
    derived("max_prompt_length", "data.max_prompt_length"),
    same("max_completion_length", "data.max_response_length"),
    same("shuffle_dataset", "data.shuffle"),
    none("remove_unused_columns", kSame, "a reward gets all columns of a record"),
    none("dataset_*", kSame, "how the data are read"),
    none("dataloader_*", kSame, "how the data are read"),
    // Batches and updates
    derived("per_device_train_batch_size", "data.train_batch_size"),
    derived("gradient_accumulation_steps", "data.train_batch_size"),
    derived("generation_batch_size", "data.train_batch_size"),
    derived("steps_per_generation", "data.train_batch_size"),
    derived("num_processes", "data.train_batch_size"),
    derived("launcher.num_processes", "data.train_batch_size"),
    derived("launcher.nproc_per_node", "data.train_batch_size"),
    derived("num_generations", "rollout.n"),
    same("num_iterations", "learner.ppo_epochs"),
    derived("num_train_epochs", "data.total_epochs"),
    derived("max_steps", "learner.total_training_steps"),
    same("learning_rate", "learner.optimizer.lr"),
    derived("lr_scheduler_type", "learner.optimizer.lr_scheduler_type"),
    derived("lr_scheduler_kwargs.min_lr", "learner.optimizer.min_lr_ratio"),
    derived("lr_scheduler_kwargs.min_lr_rate", "learner.optimizer.min_lr_ratio"),
    none("lr_scheduler_kwargs.num_cycles", kDiffers, "the rate falls once, to its least", "0.5"),
    derived("warmup_ratio", "learner.optimizer.lr_warmup_steps_ratio"),
    derived("warmup_steps", "learner.optimizer.lr_warmup_steps"),
    same("weight_decay", "learner.optimizer.weight_decay"),
    derived("adam_beta1", "learner.optimizer.betas"),
    derived("adam_beta2", "learner.optimizer.betas"),
    same("adam_epsilon", "learner.optimizer.eps"),
    same("max_grad_norm", "learner.optimizer.grad_clip"),
    none("optim", kDiffers, "AdamW in float32 is the only optimizer",
         "adamw_torch|adamw_torch_fused|adamw_hf|adamw"),
    none("disable_dropout", kSame, "models of this version have no dropout"),
    // Sampling
    same("temperature", "rollout.temperature"),
    same("top_p", "rollout.top_p"),
    same("top_k", "rollout.top_k"),
    same("min_p", "rollout.min_p"),
    none("repetition_penalty", kDiffers, "a penalty on repetition is not in this version", "1"),
    none("generation_kwargs*", kDiffers, "give the sampling in section `rollout`"),
    none("cache_implementation", kSame, kEngine),
    none("use_transformers_paged", kSame, kEngine),
    none("use_vllm", kSame, kEngine),
    none("vllm_importance_sampling_*", kSame,
         "engine and learner agree to the bit, so that there is nothing to correct"),
    none("vllm_structured_outputs_regex", kDiffers, "completions follow no given pattern"),
    none("vllm_guided_decoding_regex", kDiffers, "completions follow no given pattern"),
    none("vllm_*", kSame, kEngine),
    none("ds3_gather_for_generation", kSame, kLayout),
    // The loss
    derived("beta", "algorithm.kl_loss_coef"),
    derived("epsilon", "algorithm.clip_ratio_low"),
    derived("epsilon_high", "algorithm.clip_ratio_high"),
    derived("delta", "algorithm.clip_ratio_c"),
    derived("loss_type", "algorithm.loss_agg_mode"),
    derived("importance_sampling_level", "algorithm.loss_mode"),
    derived("scale_rewards", "algorithm.scale_rewards"),
    same("mask_truncated_completions", "algorithm.mask_truncated_completions"),
    none("sync_ref_model", kDiffers, kReference, "false"),
    none("ref_model_*", kSame, kReference),
    none("top_entropy_quantile", kDiffers, "all tokens of a completion are trained", "1"),
    none("off_policy_mask_threshold", kDiffers, "no completion is left out for its divergence"),
    derived("use_bias_correction_kl", "algorithm.kl_loss_coef"),
    same("entropy_coef", "algorithm.entropy_coeff"),
    none("use_adaptive_entropy", kDiffers, "the weight of the entropy stays the same", "false"),
    none("multi_objective_aggregation", kDiffers, "weighted rewards are added, and normalised then",
         "sum_then_normalize"),
    none("sapo_*", kSame, "settings of a loss that is not used"),
    none("cast_lm_head_to_fp32", kSame, "logits are float32"),
    none("use_liger_*", kSame, kLayout),
    // The reward
    derived("reward_funcs", "reward"),
    derived("reward_weights", "reward.parts.NAME.weight"),
    derived("soft_punish_cache", "algorithm.overlong_buffer.len"),
    none("max_completion_len", kSame, "the penalty rises towards `data.max_response_length`"),
    none("reward_model_name_or_path", kDiffers, "reward models are not in this version"),
    none("cosine_*", kSame, kReward),
    none("repetition_*", kSame, kReward),
    none("code_*", kSame, kReward),
    none("max_tool_calling_iterations", kDiffers, "turns and tools are not in this version"),
    // The run
    same("seed", "seed"),
    none("data_seed", kSame, "`seed` decides the order of the data too"),
    same("run_name", "name"),
    derived("output_dir", "name"),
    derived("report_to", "trackers"),
    same("wandb_project", "tracking.project"),
    same("wandb_entity", "tracking.entity"),
    same("wandb_run_group", "tracking.group"),
    derived("save_strategy", "learner.save_freq"),
    derived("save_steps", "learner.save_freq"),
    same("save_total_limit", "learner.max_ckpt_to_keep"),
    derived("eval_strategy", "learner.test_freq"),
    none("do_eval", kSame, "`eval_strategy` says whether there are evaluations"),
    derived("eval_steps", "learner.test_freq"),
    derived("num_generations_eval", "eval.n"),
    same("eval_on_start", "learner.val_before_train"),
    none("resume_from_checkpoint", kToDo, "`tandem run --resume RUN` goes on with a run", "false"),
    none("load_best_model_at_end", kSame, "`learner.keep_best` keeps the best checkpoint", "false"),
    none("metric_for_best_model", kSame, "`learner.keep_best` keeps the best checkpoint"),
    none("greater_is_better", kSame, "`learner.keep_best_mode` says which is the best"),
    none("per_device_eval_batch_size", kSame, kLayout),
    none("bf16_full_eval", kSame, kLayout),
    none("gradient_checkpointing_kwargs*", kSame, kLayout),
    none("deepspeed", kSame, kLayout),
    none("fsdp*", kSame, kLayout),
    none("ddp_*", kSame, kLayout),
    none("tf32", kSame, kLayout),
    none("torch_compile*", kSame, kLayout),
    none("log_*", kSame, kLogs),
    none("logging_*", kSame, kLogs),
    none("num_completions_to_print", kSame, kLogs),
    none("push_to_hub*", kSame, kLogs),
    none("hub_*", kSame, kLogs),
    none("overwrite_output_dir", kSame, kLogs),
    none("overwrite_hub_revision", kSame, kLogs),
    none("save_only_model", kSame, kLogs),
    none("save_*", kSame, kLogs),
    none("eval_*", kSame, kLogs),
    none("do_train", kSame, kLogs),
    none("benchmarks", kSame, kLogs),
    none("callbacks", kSame, kLogs),
    none("wandb_*", kSame, kLogs),
    none("disable_tqdm", kSame, kLogs),
    none("launcher.*", kSame, kLayout),
    // The experimental asynchronous trainer
    same("max_staleness", "async.max_staleness"),
    same("weight_sync_steps", "async.trigger_parameter_sync_step"),
    none("max_inflight_tasks", kSame, kLayout),
    none("queue_maxsize", kSame, kLayout),
};

// Of GRPOConfig and TrainingArguments, where Tandem's default is another.
constexpr ForeignDefault kDefaults[] = {
    {"bf16", "true"},
    {"gradient_checkpointing", "true"},
    {"max_completion_length", "512"},  // since 1.10; 256 before
    {"per_device_train_batch_size", "8"},
    {"gradient_accumulation_steps", "1"},
    {"num_generations", "8"},
    {"num_train_epochs", "3"},
    {"learning_rate", "1e-6"},
    {"lr_scheduler_type", R"("linear")"},
    {"weight_decay", "0.0"},
    {"adam_beta1", "0.9"},
    {"adam_beta2", "0.999"},
    {"beta", "0.0"},
    {"epsilon", "0.2"},
    {"loss_type", R"("dapo")"},
    {"importance_sampling_level", R"("token")"},
    {"scale_rewards", R"("group")"},
    {"save_strategy", R"("steps")"},
    {"save_steps", "500"},
    {"eval_strategy", R"("no")"},
    {"eval_on_start", "false"},
};

constexpr std::string_view kMarks[] = {"num_generations", "reward_funcs", "max_completion_length",
                                       "per_device_train_batch_size", "model_name_or_path"};
constexpr std::string_view kPrograms[] = {"open_r1"};

// Whether it is of the experimental trainer that generates ahead, whose defaults are others.
bool is_async(const Draft& draft) {
  return draft.given("max_staleness") || draft.given("weight_sync_steps") ||
         draft.given("queue_maxsize") || draft.given("max_inflight_tasks");
}

// How many updates a batch makes, and of how many prompts both are.
struct Batch {
  std::int64_t prompts = 1, mini = 1;
  double updates = 1;
};

Batch batch_of(Draft& draft) {
  const auto one = [&](std::string_view key, std::int64_t fallback) {
    return std::max<std::int64_t>(draft.whole(key).value_or(fallback), 1);
  };
  std::int64_t processes = one("num_processes", 0);
  bool known = draft.given("num_processes");
  for (const std::string_view key : {"launcher.num_processes", "launcher.nproc_per_node"})
    if (draft.given(key)) {
      processes = one(key, 1);
      known = true;
    }
  if (!known)
    draft.tell(kDiffers, {"per_device_train_batch_size"},
               "how many processes train is not in the file: a batch is that of one process, so "
               "multiply `data.train_batch_size` by their number");
  const std::int64_t device = one("per_device_train_batch_size", 8);
  const std::int64_t accumulation = one("gradient_accumulation_steps", 1);
  const std::int64_t n = one("num_generations", 8);
  const std::int64_t update = device * accumulation * processes;
  std::int64_t batch = device * processes * one("steps_per_generation", accumulation);
  if (draft.given("generation_batch_size")) batch = one("generation_batch_size", batch);
  if (batch % n != 0 || update % n != 0)
    draft.tell(kDiffers, {"num_generations"},
               "a batch of " + std::to_string(batch) +
                   " completions is no whole number of prompts "
                   "with " +
                   std::to_string(n) + " each: it is rounded");
  return {std::max<std::int64_t>(batch / n, 1), std::max<std::int64_t>(update / n, 1),
          static_cast<double>(batch) / static_cast<double>(update)};
}

// A number of TRL's steps, which are updates, in steps of the job.
std::int64_t steps_of(double updates, const Batch& batch, const Draft& draft) {
  const double each = batch.updates * static_cast<double>(std::max<std::int64_t>(
                                          draft.whole("num_iterations").value_or(1), 1));
  return std::max<std::int64_t>(static_cast<std::int64_t>(std::ceil(updates / each)), 1);
}

void set_data(Draft& draft) {
  set_model(draft, "model_name_or_path");
  const std::string type = draft.text(draft.given("torch_dtype") ? "torch_dtype" : "dtype");
  const bool half = type == "bfloat16" || draft.truth("bf16");
  draft.set("model.dtype", half ? "bfloat16" : "float32", {"bf16", "torch_dtype", "dtype"});
  set_data_files(draft, "data.train_files", "dataset_name");
  if (is_async(draft) && !draft.given("max_completion_length"))
    draft.set("data.max_response_length", 2048, {}, "the asynchronous trainer's default");
  for (const std::string& reward : draft.texts("reward_funcs"))
    if (reward.starts_with("accuracy"))
      draft.set("data.answer_key", "solution", {}, "the column that `accuracy` reads");
  if (draft.given("system_prompt")) {
    draft.set("data.system_prompt", draft.text("system_prompt"), {"system_prompt"});
    draft.set("data.prompt_is", "chat", {"system_prompt"}, "open-r1 makes a conversation of it");
  }
  if (draft.given("chat_template"))
    draft.tell(kDiffers, {"chat_template"},
               "write the template into a .jinja file, and name it in `data.chat_template`");
  if (draft.given("max_prompt_length")) {
    draft.set("data.max_prompt_length", *draft.value("max_prompt_length"), {"max_prompt_length"});
    draft.set("data.truncation", "left", {"max_prompt_length"}, "TRL keeps the last tokens");
  } else {
    set_open_prompt_limit(draft, 512);
  }
}

void set_schedule(Draft& draft, const Batch& batch) {
  const bool ahead = is_async(draft) && !draft.given("lr_scheduler_type");
  const std::string type = ahead ? "constant" : draft.text("lr_scheduler_type");
  const bool constant = type.starts_with("constant");
  const bool cosine = type.starts_with("cosine");
  if (!constant && type != "linear" && type != "cosine" && type != "cosine_with_min_lr")
    draft.tell(kDiffers, {"lr_scheduler_type"},
               "the schedule `" + type + "` is not in this version: " +
                   (cosine ? "cosine" : "linear") + " stands in its place");
  draft.set("learner.optimizer.lr_scheduler_type",
            constant ? "constant"
            : cosine ? "cosine"
                     : "linear",
            {"lr_scheduler_type"});
  double least = draft.number("lr_scheduler_kwargs.min_lr_rate").value_or(0);
  const double lr = draft.number("learning_rate").value_or(1e-6);
  if (const auto min_lr = draft.number("lr_scheduler_kwargs.min_lr"); min_lr && lr > 0)
    least = *min_lr / lr;
  if (!constant)
    draft.set(
        "learner.optimizer.min_lr_ratio", least,
        {"lr_scheduler_kwargs.min_lr_rate", "lr_scheduler_kwargs.min_lr", "lr_scheduler_type"});
  const double steps = draft.number("warmup_steps").value_or(0);
  if (steps >= 1)
    draft.set("learner.optimizer.lr_warmup_steps", steps_of(steps, batch, draft), {"warmup_steps"},
              batch.updates > 1 ? "in batches" : "");
  else if (const double ratio = std::max(draft.number("warmup_ratio").value_or(0), steps);
           ratio > 0)
    draft.set("learner.optimizer.lr_warmup_steps_ratio", ratio, {"warmup_ratio", "warmup_steps"});
  else
    draft.set("learner.optimizer.lr_warmup_steps", 0, {"warmup_steps", "warmup_ratio"});
  draft.set("learner.optimizer.betas",
            json::array({draft.number("adam_beta1").value_or(0.9),
                         draft.number("adam_beta2").value_or(0.999)}),
            {"adam_beta1", "adam_beta2"});
}

// TRL's loss_type names the average over tokens, and two further losses.
void set_loss(Draft& draft) {
  const std::string type = draft.text("loss_type");
  const std::string level = draft.text("importance_sampling_level");
  std::string mode = "vanilla";
  if (type == "cispo") mode = "cispo";
  if (level == "sequence") mode = "gspo";
  draft.set("algorithm.loss_mode", mode, {"loss_type", "importance_sampling_level"});
  if (level != "token" && level != "sequence")
    draft.tell(kDiffers, {"importance_sampling_level"}, "ratios are of tokens");
  if (level == "sequence" && type != "grpo")
    draft.tell(kDiffers, {"loss_type", "importance_sampling_level"},
               "gspo averages over the tokens of a sequence and then over sequences");
  const bool known =
      type == "grpo" || type == "bnpo" || type == "dapo" || type == "dr_grpo" || type == "cispo";
  if (!known)
    draft.tell(kDiffers, {"loss_type"},
               "the loss `" + type +
                   "` is not in this version: the clip "
                   "per token stands in its place");
  if (type == "bnpo")
    draft.tell(
        kDiffers, {"loss_type"},
        "bnpo averages over the tokens of each device's batch, and `token-mean` over those of "
        "the mini-batch");
  if (mode != "gspo")
    draft.set("algorithm.loss_agg_mode",
              type == "grpo"      ? "seq-mean-token-mean"
              : type == "dr_grpo" ? "seq-mean-token-sum-norm"
                                  : "token-mean",
              {"loss_type"});
  const double low = draft.number("epsilon").value_or(0.2);
  const double high = draft.number("epsilon_high").value_or(low);
  // cispo caps the ratio itself at epsilon_high, and has no lower bound.
  const Clip clip =
      mode == "cispo" ? Clip{1.0, std::max(high - 1, 0.0)} : Clip{low, high, draft.number("delta")};
  set_clip(draft, clip, {"epsilon"}, {"epsilon_high", "epsilon"}, {"delta"});
  const double beta = draft.number("beta").value_or(0);
  set_kl_loss(draft, beta, "k3", {"beta"}, {"beta"});
  constexpr std::string_view kWeighed = "use_bias_correction_kl";
  if (beta != 0 && (!draft.given(kWeighed) || draft.truth(kWeighed)))
    draft.tell(kDiffers, {draft.given(kWeighed) ? kWeighed : "beta"},
               "since 1.10 TRL weighs the divergence of a token by its ratio, unless "
               "use_bias_correction_kl is false; here it is not weighed");
}

void set_scale(Draft& draft) {
  const json* const value = draft.value("scale_rewards");
  std::string scale = value ? text_of(*value) : "group";
  if (const auto truth = value ? truth_of(*value) : std::nullopt) scale = *truth ? "group" : "none";
  if (scale != "group" && scale != "batch" && scale != "none") {
    draft.tell(kDiffers, {"scale_rewards"},
               "advantages are divided by a standard deviation or by nothing, not by the " + scale);
    scale = "none";
  }
  draft.set("algorithm.scale_rewards", scale, {"scale_rewards"});
}

// A reward of open-r1 or TRL that Tandem has itself: its type, and the pattern of a regex.
struct KnownReward {
  std::string_view name, type, pattern;
};
constexpr KnownReward kKnownRewards[] = {
    {"accuracy", "math", ""},
    {"accuracy_reward", "math", ""},
    {"format", "regex", R"((?s)\A<think>\n.*?\n</think>\n<answer>\n.*?\n</answer>\z)"},
    {"think_format_reward", "regex", R"((?s)\A<think>(?!.*<think>).*?</think>.*\z)"},
};

bool set_part(Draft& draft, const std::string& name, double weight, bool alone) {
  const std::string at =
      alone ? "reward." : "reward.parts." + name.substr(name.rfind('.') + 1) + ".";
  const auto known = std::ranges::find(kKnownRewards, name, &KnownReward::name);
  const std::size_t dot = name.rfind('.');
  if (known == std::end(kKnownRewards) && dot == name.npos) {
    draft.tell(kDiffers, {"reward_funcs"},
               "the reward `" + name +
                   "` has no counterpart: add it as a part of `reward` with "
                   "`type: python` and `function: FILE.py:NAME`, as TRL calls it");
    return false;
  }
  if (known == std::end(kKnownRewards)) {
    draft.set(at + "type", "python", {"reward_funcs"});
    draft.set(at + "function", name.substr(0, dot) + ":" + name.substr(dot + 1), {"reward_funcs"});
    draft.set(at + "signature", "trl", {"reward_funcs"});
  } else {
    draft.set(at + "type", std::string(known->type), {"reward_funcs"}, name);
    if (!known->pattern.empty())
      draft.set(at + "pattern", std::string(known->pattern), {"reward_funcs"}, name);
  }
  if (weight != 1) draft.set(at + "weight", weight, {"reward_weights"});
  return true;
}

void set_reward(Draft& draft) {
  const std::vector<std::string> names = draft.texts("reward_funcs");
  const std::vector<std::string> weights = draft.texts("reward_weights");
  const auto weight_of = [&](std::size_t i) {
    return i < weights.size() ? number_of(json(weights[i])).value_or(1) : 1;
  };
  if (names.empty())
    draft.tell(kDiffers, {"reward_funcs"},
               "the configuration names no reward: TRL's are given in Python; set `reward`, whose "
               "default compares the whole completion with the answer");
  bool any = false;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == "soft_overlong_punishment" || names[i] == "get_soft_overlong_punishment") {
      // open-r1 has a key for the length, TRL's own function two fixed ones.
      const bool fixed = names[i].starts_with("get_");
      draft.set("algorithm.overlong_buffer.len",
                draft.whole("soft_punish_cache").value_or(fixed ? 256 : 4096),
                {"soft_punish_cache"});
      if (fixed && !draft.is("data.max_response_length", 1280))
        draft.tell(
            kDiffers, {"reward_funcs"},
            "the penalty rises towards `data.max_response_length`, and TRL's to 1280 tokens");
      draft.set("algorithm.overlong_buffer.penalty_factor", weight_of(i), {"reward_funcs"});
      any = true;
      continue;
    }
    any = set_part(draft, names[i], weight_of(i), names.size() == 1) || any;
  }
  if (!names.empty() && !any)
    draft.tell(
        kDiffers, {"reward_funcs"},
        "no reward came over: set `reward`, whose default compares the whole completion with "
        "the answer");
}

void set_saves(Draft& draft, const Batch& batch) {
  const std::string saves = draft.text("save_strategy");
  const double steps = draft.number("save_steps").value_or(500);
  if (saves == "epoch") {
    draft.set("learner.save_freq", 0, {"save_strategy"});
    draft.set("learner.save_every_epochs", 1, {"save_strategy"});
  } else if (saves != "steps" || steps < 1) {
    draft.set("learner.save_freq", 0, {"save_strategy", "save_steps"});
  } else {
    draft.set("learner.save_freq", steps_of(steps, batch, draft), {"save_steps"});
  }
}

void set_evaluation(Draft& draft, const Batch& batch) {
  const std::string evaluates = draft.text("eval_strategy");
  if (evaluates != "steps" && evaluates != "epoch") {
    if (draft.truth("eval_on_start"))
      draft.tell(kSame, {"eval_on_start"}, "there is no evaluation (eval_strategy)");
    return draft.drop("learner.val_before_train");
  }
  set_data_files(draft, "data.val_files", "dataset_name");
  draft.tell(
      kToDo, {"eval_strategy"},
      "TRL evaluates on the data set's test split: of a folder `data.val_files` takes it, and "
      "a file has none");
  if (evaluates == "epoch")
    draft.tell(kSame, {"eval_strategy"}, "evaluations are counted in steps (`learner.test_freq`)");
  else
    draft.set("learner.test_freq", steps_of(draft.number("eval_steps").value_or(500), batch, draft),
              {"eval_steps"});
  const std::string_view own = "num_generations_eval";
  draft.set("eval.n", draft.whole(draft.given(own) ? own : "num_generations").value_or(8),
            {own, "num_generations"});
  draft.set("eval.temperature", draft.number("temperature").value_or(1.0), {"temperature"},
            "evaluations sample as training does");
}

void set_length(Draft& draft, const Batch& batch) {
  const double steps = draft.number("max_steps").value_or(-1);
  if (steps > 0) {
    draft.set("learner.total_training_steps", steps_of(steps, batch, draft), {"max_steps"},
              batch.updates > 1 ? "in batches" : "");
    return;
  }
  const double epochs = draft.number("num_train_epochs").value_or(3);
  if (std::ceil(epochs) != epochs)
    draft.tell(kDiffers, {"num_train_epochs"}, "epochs are whole numbers: it is rounded up");
  draft.set("data.total_epochs",
            std::max<std::int64_t>(static_cast<std::int64_t>(std::ceil(epochs)), 1),
            {"num_train_epochs"});
}

void derive(Draft& draft) {
  const Batch batch = batch_of(draft);
  set_data(draft);
  draft.set("rollout.n", draft.whole("num_generations").value_or(8), {"num_generations"});
  set_batch(draft, batch.prompts, batch.mini,
            {"per_device_train_batch_size", "gradient_accumulation_steps", "generation_batch_size",
             "steps_per_generation", "launcher.num_processes", "num_processes"},
            {"gradient_accumulation_steps", "steps_per_generation", "generation_batch_size"});
  set_schedule(draft, batch);
  set_loss(draft);
  set_scale(draft);
  set_reward(draft);
  set_saves(draft, batch);
  set_evaluation(draft, batch);
  set_length(draft, batch);
  set_trackers(draft, "report_to");
  if (!draft.given("run_name") && draft.given("output_dir")) {
    const std::string folder = draft.text("output_dir");
    draft.set("name", folder.substr(folder.rfind('/') + 1), {"output_dir"});
  }
  if (!is_async(draft))
    set_synchronous(draft);
  else if (!draft.given("max_staleness"))
    draft.set("async.max_staleness", 4, {}, "the asynchronous trainer's default");
}

}  // namespace
}  // namespace trl

Dialect trl_dialect() {
  return {"trl", "TRL", trl::kMarks, trl::kPrograms, trl::kRules, trl::kDefaults, trl::derive};
}

}  // namespace tandem::translate
