// NeMo-RL's YAML, whose files build on each other by `defaults`. Its own values of what is left out
// are those of grpo_math_1B.yaml, on which its recipes build.
//
//   num_prompts_per_step     prompts of a step
//   train_global_batch_size  completions of an update: prompts times num_generations_per_prompt
//   max_total_sequence_length bounds prompt and completion together; here each has its own bound
#include <algorithm>

#include "actors/translate/draft.h"
#include "actors/translate/frameworks.h"
#include "actors/translate/nemo_rl_keys.h"
#include "actors/translate/shared_keys.h"
#include "actors/translate/shared_rules.h"

namespace tandem::translate {
namespace nemo_rl {
namespace {

using nlohmann::json;
using enum Severity;

void set_lengths(Draft& draft) {
  draft.set("data.max_prompt_length", draft.whole("data.max_input_seq_length", 512),
            {"data.max_input_seq_length", "policy.max_total_sequence_length"});
  draft.set("data.max_response_length", draft.whole("policy.generation.max_new_tokens", 512),
            {"policy.generation.max_new_tokens", "policy.max_total_sequence_length"});
  draft.tell(kDiffers, {"policy.max_total_sequence_length"},
             "it bounds prompt and completion together, and here each has a bound of its own: "
             "completions may be longer");
}

// The first key of these that the file gives; of a list of data sets the first one counts.
std::string first_text(Draft& draft, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys)
    if (draft.given(key)) return draft.text(key);
  return "";
}

// The data sets that NeMo-RL loads by a name of its own, and the columns that it takes of each.
struct NamedData {
  std::string_view name, hub, prompt, answer;
};
constexpr NamedData kNamedData[] = {
    {"OpenMathInstruct-2", "nvidia/OpenMathInstruct-2", "problem", "expected_answer"},
    {"DeepScaler", "agentica-org/DeepScaleR-Preview-Dataset", "problem", "answer"},
    {"gsm8k", "openai/gsm8k", "question", "answer"},
    {"DAPOMath17K", "BytedTsinghua-SIA/DAPO-Math-17k", "prompt", "reward_model.ground_truth"},
    {"DAPOMathAIME2024", "BytedTsinghua-SIA/AIME-2024", "prompt", "reward_model.ground_truth"},
};
const NamedData* named_data(std::string_view name) {
  const auto* const found = std::ranges::find(kNamedData, name, &NamedData::name);
  return found == std::end(kNamedData) ? nullptr : found;
}
std::string hub_or_file(const std::string& name) {
  const NamedData* const named = named_data(name);
  return named ? std::string(named->hub) : name;
}

void set_columns(Draft& draft, const NamedData* named) {
  const std::string input =
      first_text(draft, {"data.train.input_key", "data.default.input_key", "data.input_key"});
  const std::string output =
      first_text(draft, {"data.train.output_key", "data.default.output_key", "data.output_key"});
  const auto column = [](const std::string& given, std::string_view own, std::string_view usual) {
    return !given.empty() ? given : std::string(own.empty() ? usual : own);
  };
  draft.set("data.prompt_key", column(input, named ? named->prompt : "", "input"),
            {"data.train.input_key", "data.default.input_key", "data.input_key"});
  draft.set("data.answer_key", column(output, named ? named->answer : "", "output"),
            {"data.train.output_key", "data.default.output_key", "data.output_key"});
  draft.set("data.prompt_is", "chat", {}, "NeMo-RL makes a conversation of a prompt");
}

void set_data(Draft& draft) {
  set_model(draft, "policy.model_name");
  const std::string precision = draft.text("policy.precision");
  draft.set("model.dtype", precision == "float32" ? "float32" : "bfloat16", {"policy.precision"});
  if (precision == "float16")
    draft.tell(kDiffers, {"policy.precision"}, "float16 is not in this version");
  const json* const sets = draft.value("data.train");
  if (sets && sets->is_array())
    draft.tell(kDiffers, {"data.train"},
               "several data sets: name their files in `data.train_files`, and their weights in "
               "`data.mixture`");
  const std::string train = first_text(draft, {"data.train.data_path", "data.train_data_path",
                                               "data.train.dataset_name", "data.dataset_name"});
  if (!train.empty() && train != "ResponseDataset")
    set_data_files(draft, "data.train_files", {hub_or_file(train)},
                   {"data.train.data_path", "data.train_data_path", "data.train.dataset_name",
                    "data.dataset_name"});
  const std::string validation = first_text(
      draft, {"data.validation.data_path", "data.val_data_path", "data.validation.dataset_name"});
  if (!validation.empty())
    set_data_files(
        draft, "data.val_files", {hub_or_file(validation)},
        {"data.validation.data_path", "data.val_data_path", "data.validation.dataset_name"});
  else
    draft.tell(
        kToDo, {"grpo.val_period"},
        "the configuration names no file of held-out prompts: without `data.val_files` nothing "
        "is evaluated");
  set_columns(draft, named_data(train));
  for (const std::string_view key :
       {"data.default.prompt_file", "data.train.prompt_file", "data.prompt_file"})
    if (draft.given(key)) draft.tell(kDiffers, {key}, kNemoRlPromptFile);
  for (const std::string_view key : {"data.default.system_prompt_file",
                                     "data.train.system_prompt_file", "data.system_prompt_file"})
    if (draft.given(key)) draft.set("data.system_prompt_file", draft.text(key), {key});
  for (const std::string_view key : {"input_key", "output_key"}) {
    const std::string held_out = "data.validation." + std::string(key);
    const JobValue* const ours =
        draft.find(key == "input_key" ? "data.prompt_key" : "data.answer_key");
    if (draft.given(held_out) && (!ours || ours->value != draft.text(held_out)))
      draft.tell(kDiffers, {held_out}, "all data files have the columns of the training data");
  }
}

void set_steps(Draft& draft) {
  const auto prompts = draft.whole("grpo.num_prompts_per_step", 32);
  const auto n = std::max<std::int64_t>(draft.whole("grpo.num_generations_per_prompt", 16), 1);
  const auto update = draft.whole("policy.train_global_batch_size", 512);
  draft.set("rollout.n", n, {"grpo.num_generations_per_prompt"});
  set_batch(draft, prompts, std::max<std::int64_t>(update / n, 1), {"grpo.num_prompts_per_step"},
            {"policy.train_global_batch_size", "grpo.num_generations_per_prompt"});
  const auto steps = draft.whole("grpo.max_num_steps", 1000000);
  const auto epochs = draft.whole("grpo.max_num_epochs", 1);
  if (steps < 1000000) {
    draft.set("learner.total_training_steps", steps, {"grpo.max_num_steps"});
    draft.tell(kSame, {"grpo.max_num_epochs"},
               "`learner.total_training_steps` decides; NeMo-RL ends with whichever comes first");
  } else {
    draft.set("data.total_epochs", epochs, {"grpo.max_num_epochs"});
  }
  const bool saves = draft.truth("checkpointing.enabled");
  draft.set("learner.save_freq", saves ? draft.whole("checkpointing.save_period", 10) : 0,
            {"checkpointing.save_period", "checkpointing.enabled"});
  draft.set("eval.temperature", draft.number("policy.generation.temperature").value_or(1),
            {"policy.generation.temperature"}, "evaluations sample as training does");
  draft.set("rollout.temperature", draft.number("policy.generation.temperature").value_or(1),
            {"policy.generation.temperature"});
  json trackers = json::array();
  if (draft.truth("logger.tensorboard_enabled")) trackers.push_back("tensorboard");
  if (draft.truth("logger.wandb_enabled")) trackers.push_back("wandb");
  if (!trackers.empty())
    draft.set("trackers", trackers, {"logger.tensorboard_enabled", "logger.wandb_enabled"});
}

void set_estimator(Draft& draft) {
  const std::string at = "grpo.adv_estimator.";
  const bool nested = draft.config().has_section("grpo.adv_estimator");
  const auto key = [&](const std::string& name) {
    return nested && draft.given(at + name) ? at + name : "grpo." + name;
  };
  const std::string scale = key("normalize_rewards"), leave = key("use_leave_one_out_baseline");
  const std::string name = draft.text(at + "name");
  if (name == "reinforce_plus_plus") {
    const bool baseline = !draft.given(at + "minus_baseline") || draft.truth(at + "minus_baseline");
    draft.set("algorithm.adv_estimator", baseline ? "grpo" : "reinforce_plus_plus", {at + "name"});
    if (!baseline) return;
    draft.set("algorithm.scale_rewards", "none", {at + "minus_baseline"});
    draft.set("algorithm.advantage_batch_normalize", true, {at + "minus_baseline"});
    return;
  }
  if (!name.empty() && name != "grpo")
    draft.tell(kDiffers, {at + "name"},
               "the estimator `" + name +
                   "` is not in this version: grpo "
                   "stands in its place");
  const bool scaled = draft.truth(scale), one_out = draft.truth(leave);
  draft.set("algorithm.adv_estimator", one_out ? "rloo" : "grpo", {leave});
  draft.set("algorithm.scale_rewards", scaled ? "group" : "none", {scale});
  if (scaled && one_out)
    draft.tell(
        kDiffers, {scale, leave},
        "NeMo-RL's standard deviation leaves the completion itself out, and the group's does "
        "not");
}

void set_loss(Draft& draft) {
  const bool sequence = draft.truth("loss_fn.sequence_level_importance_ratios");
  const bool cispo = draft.truth("loss_fn.use_cispo");
  draft.set("algorithm.loss_mode",
            cispo      ? "cispo"
            : sequence ? "gspo"
                       : "vanilla",
            {"loss_fn.sequence_level_importance_ratios", "loss_fn.use_cispo"});
  if (!sequence)
    draft.set("algorithm.loss_agg_mode",
              draft.truth("loss_fn.token_level_loss") ? "token-mean" : "seq-mean-token-mean",
              {"loss_fn.token_level_loss"});
  set_clip(
      draft,
      {draft.number("loss_fn.ratio_clip_min").value_or(0.2),
       draft.number("loss_fn.ratio_clip_max").value_or(0.2), draft.number("loss_fn.ratio_clip_c")},
      {"loss_fn.ratio_clip_min"}, {"loss_fn.ratio_clip_max"}, {"loss_fn.ratio_clip_c"});
  set_kl_loss(draft, draft.number("loss_fn.reference_policy_kl_penalty").value_or(0.01),
              draft.text("loss_fn.reference_policy_kl_type"),
              {"loss_fn.reference_policy_kl_penalty"}, {"loss_fn.reference_policy_kl_type"});
  if (!draft.truth("loss_fn.use_importance_sampling_correction")) return;
  const std::string cap = "loss_fn.truncated_importance_sampling_ratio";
  draft.set("algorithm.bypass_mode", false, {"loss_fn.use_importance_sampling_correction"});
  draft.set("algorithm.rollout_is", "token", {"loss_fn.use_importance_sampling_correction"});
  const std::string type = draft.text("loss_fn.truncated_importance_sampling_type");
  const bool of_sequences = type == "seq-mask-tis";
  draft.set("algorithm.rollout_is_threshold",
            of_sequences ? 1000000 : draft.number(cap).value_or(1000000), {cap},
            of_sequences       ? "the bounds are those of sequences"
            : draft.given(cap) ? ""
                               : "no bound");
  if (type != "icepop" && type != "seq-mask-tis") return;
  draft.set("algorithm.rollout_rs", type == "icepop" ? "token" : "geometric",
            {"loss_fn.truncated_importance_sampling_type"});
  draft.set("algorithm.rollout_rs_threshold", draft.number(cap).value_or(5), {cap});
  draft.set("algorithm.rollout_rs_threshold_lower", draft.number(cap + "_min").value_or(0.5),
            {cap + "_min"});
}

void set_filters(Draft& draft) {
  if (draft.truth("grpo.use_dynamic_sampling"))
    draft.set("algorithm.filter_groups.max_num_gen_batches",
              draft.whole("grpo.dynamic_sampling_max_gen_batches", 10),
              {"grpo.dynamic_sampling_max_gen_batches"});
  std::string at = "grpo.reward_shaping.";
  const std::string stop = at + "stop_properly_penalty_coef", most = at + "max_response_length";
  if (draft.truth(at + "enabled") && draft.number(stop)) {
    draft.tell(kDiffers, {stop}, "a truncated completion keeps its reward");
  } else if (draft.truth(at + "enabled")) {
    if (draft.whole(most) && draft.whole(most) != draft.whole("policy.generation.max_new_tokens"))
      draft.tell(kDiffers, {most}, "the penalty rises towards `data.max_response_length`");
    draft.set("algorithm.overlong_buffer.len", draft.whole(at + "overlong_buffer_length", 128),
              {at + "overlong_buffer_length"});
    draft.set("algorithm.overlong_buffer.penalty_factor",
              draft.number(at + "overlong_buffer_penalty").value_or(1),
              {at + "overlong_buffer_penalty"});
  }
  at = "grpo.reward_scaling.";
  if (!draft.truth(at + "enabled")) return;
  const double from = draft.number(at + "source_min").value_or(0),
               to = draft.number(at + "source_max").value_or(1),
               least = draft.number(at + "target_min").value_or(0),
               greatest = draft.number(at + "target_max").value_or(1);
  if (to == from) return;
  const double scale = (greatest - least) / (to - from);
  draft.set("reward.scale", scale, {at + "source_max", at + "target_max"});
  draft.set("reward.bias", least - from * scale, {at + "source_min", at + "target_min"});
  draft.set("reward.clip", json::array({std::min(least, greatest), std::max(least, greatest)}),
            {at + "target_min", at + "target_max"});
}

void set_megatron_optimizer(Draft& draft, const std::string& at, double lr) {
  draft.set("learner.optimizer.betas",
            json::array({draft.number(at + "adam_beta1").value_or(0.9),
                         draft.number(at + "adam_beta2").value_or(0.999)}),
            {at + "adam_beta1", at + "adam_beta2"});
  const std::string schedule = "policy.megatron_cfg.scheduler.";
  const std::string style = draft.text(schedule + "lr_decay_style");
  const std::string kind = draft.text(at + "optimizer");
  if (!kind.empty() && kind != "adam") draft.tell(kDiffers, {at + "optimizer"}, kAdamW);
  if (const auto eps = draft.number(at + "adam_eps"))
    draft.set("learner.optimizer.eps", *eps, {at + "adam_eps"});
  if (const auto norm = draft.number(at + "clip_grad"))
    draft.set("learner.optimizer.grad_clip", *norm, {at + "clip_grad"});
  if (draft.value(at + "decoupled_weight_decay") && !draft.truth(at + "decoupled_weight_decay"))
    draft.tell(kDiffers, {at + "decoupled_weight_decay"},
               "weight decay is AdamW's, apart from the gradient");
  const auto falls = draft.whole(schedule + "lr_decay_iters");
  if (falls && !style.empty() && style != "constant" && falls != draft.whole("grpo.max_num_steps"))
    draft.tell(kDiffers, {schedule + "lr_decay_iters"}, "the rate falls until the last step");
  if (draft.number(schedule + "lr_warmup_init").value_or(0) > 0 &&
      draft.whole(schedule + "lr_warmup_iters", 13) > 0)
    draft.tell(kDiffers, {schedule + "lr_warmup_init"}, "the warm-up begins at 0");
  const std::string growth = draft.text(schedule + "weight_decay_incr_style");
  if (!growth.empty() && growth != "constant")
    draft.tell(kDiffers, {schedule + "weight_decay_incr_style"}, kNemoRlSameDecay);
  draft.set("learner.optimizer.lr_scheduler_type", style.empty() ? "constant" : style,
            {schedule + "lr_decay_style"});
  draft.set("learner.optimizer.lr_warmup_steps", draft.whole(schedule + "lr_warmup_iters", 13),
            {schedule + "lr_warmup_iters"});
  if (const auto least = draft.number(at + "min_lr"); least && lr > 0 && style != "constant")
    draft.set("learner.optimizer.min_lr_ratio", *least / lr, {at + "min_lr"});
  if (draft.truth("policy.megatron_cfg.activation_checkpointing"))
    draft.set("learner.enable_gradient_checkpointing", true,
              {"policy.megatron_cfg.activation_checkpointing"});
}

// PyTorch's schedulers in a row, or Megatron's.
void set_optimizer(Draft& draft) {
  const bool megatron = draft.truth("policy.megatron_cfg.enabled");
  const std::string at = megatron ? "policy.megatron_cfg.optimizer." : "policy.optimizer.kwargs.";
  const double lr = draft.number(at + "lr").value_or(5e-6);
  draft.set("learner.optimizer.lr", lr, {at + "lr"});
  draft.set("learner.optimizer.weight_decay", draft.number(at + "weight_decay").value_or(0.01),
            {at + "weight_decay"});
  if (megatron) return set_megatron_optimizer(draft, at, lr);
  draft.set("learner.optimizer.betas",
            draft.value(at + "betas") ? *draft.value(at + "betas") : json::array({0.9, 0.999}),
            {at + "betas"});
  draft.set("learner.optimizer.eps", draft.number(at + "eps").value_or(1e-8), {at + "eps"});
  if (draft.truth("policy.dtensor_cfg.activation_checkpointing"))
    draft.set("learner.enable_gradient_checkpointing", true,
              {"policy.dtensor_cfg.activation_checkpointing"});
  std::int64_t warmup = draft.given("policy.scheduler") ? 0 : 50;
  std::string type = "constant";
  if (const json* const list = draft.value("policy.scheduler"); list && list->is_array())
    for (const json& one : *list) {
      if (!one.is_object() || !one.contains("name")) continue;
      const std::string name = text_of(one["name"]);
      const json* const steps = one.contains("kwargs") && one["kwargs"].contains("total_iters")
                                    ? &one["kwargs"]["total_iters"]
                                    : nullptr;
      if (name.ends_with("LinearLR") && steps) warmup = whole_of(*steps).value_or(0);
      if (name.ends_with("CosineAnnealingLR")) type = "cosine";
      if (!name.ends_with("LinearLR") && !name.ends_with("ConstantLR") && type != "cosine")
        draft.tell(kDiffers, {"policy.scheduler"},
                   "the schedule `" + name +
                       "` is not in this "
                       "version: the rate stays the same");
    }
  draft.set("learner.optimizer.lr_scheduler_type", type, {"policy.scheduler"});
  draft.set("learner.optimizer.lr_warmup_steps", warmup, {"policy.scheduler"});
  if (warmup > 0)
    draft.tell(kDiffers, {"policy.scheduler"},
               "the warm-up begins at 0, and NeMo-RL's at a tenth of the rate");
}

// The rules tell of keys of other environments.
void set_environment(Draft& draft) {
  draft.set("reward.type", "math", {}, "in place of NeMo-RL's environment `math`");
  const ForeignConfig& config = draft.config();
  for (const std::string_view math : {"env.math", "env.dapo"})
    if (config.has_section(math) || config.find(math)) return;
  draft.tell(kDiffers, {"env"}, kNemoRlEnvironments);
}

void set_async(Draft& draft) {
  const std::string at = "grpo.async_grpo.";
  if (!draft.truth(at + "enabled")) return set_synchronous(draft);
  draft.set("async.max_staleness", draft.whole(at + "max_trajectory_age_steps", 1),
            {at + "max_trajectory_age_steps"});
  draft.set("async.partial_rollout", draft.truth(at + "in_flight_weight_updates"),
            {at + "in_flight_weight_updates", at + "enabled"});
  if (draft.truth(at + "recompute_kv_cache_after_weight_updates"))
    draft.set("async.kv_on_update", "recompute", {at + "recompute_kv_cache_after_weight_updates"});
}

void derive(Draft& draft) {
  set_lengths(draft);
  set_data(draft);
  set_steps(draft);
  set_estimator(draft);
  set_loss(draft);
  set_filters(draft);
  set_optimizer(draft);
  set_environment(draft);
  set_async(draft);
}

}  // namespace
}  // namespace nemo_rl

Dialect nemo_rl_dialect() {
  return {"nemo-rl",       "NeMo-RL",          nemo_rl_marks(), nemo_rl_programs(),
          nemo_rl_rules(), nemo_rl_defaults(), nemo_rl::derive};
}

}  // namespace tandem::translate
