// OpenRLHF's PPO by flags, in the names of both generations: `--rollout_batch_size` and
// `--rollout.batch_size`. Where a flag has two names, named() gives the one that the file has, and
// the value is computed once.
//
//   rollout_batch_size   prompts of a step
//   train_batch_size     completions of an update: prompts times n_samples_per_prompt
//   KL                   in the reward, unless use_kl_loss; 0.01 by default
#include <algorithm>
#include <cmath>

#include "actors/translate/draft.h"
#include "actors/translate/frameworks.h"
#include "actors/translate/openrlhf_keys.h"
#include "actors/translate/shared_keys.h"

namespace tandem::translate {
namespace openrlhf {
namespace {

using nlohmann::json;
using enum Severity;

// The name of a flag that is given, the newer or the older one; else the older, which has a
// default.
std::string_view named(const Draft& draft, std::string_view older, std::string_view newer) {
  return draft.given(newer) ? newer : older;
}

// Since 0.9.10 one length bounds prompt and completion, the end of a longer prompt is kept, and
// models are bfloat16. Names with dots are of that time.
bool is_newer(const Draft& draft) {
  const auto& values = draft.config().values();
  return draft.given("max_len") || std::ranges::any_of(values, [](const ForeignValue& value) {
           return !value.where.empty() && value.key.find('.') != std::string::npos &&
                  !value.key.starts_with("launcher.");
         });
}

void set_lengths(Draft& draft) {
  std::string_view response = named(draft, "generate_max_len", "rollout.max_new_tokens");
  if (draft.given("max_new_tokens")) response = "max_new_tokens";
  const std::string_view total = named(draft, "max_len", "data.max_len");
  if (!is_newer(draft) || draft.given("prompt_max_len")) {
    draft.set("data.max_response_length", draft.whole(response, 1024), {response});
    draft.set("data.max_prompt_length", draft.whole("prompt_max_len", 1024), {"prompt_max_len"});
    draft.set("data.truncation", "right", {}, "OpenRLHF cuts a longer prompt at its end");
    return;
  }
  const auto tokens = draft.whole(total).value_or(2048);
  const auto most = draft.given(response) ? draft.whole(response, tokens) : tokens;
  const bool exact = draft.given(response) && most < tokens;
  draft.set("data.max_response_length", most, {response, total});
  draft.set("data.max_prompt_length", exact ? tokens - most : tokens, {total, response});
  draft.set("data.truncation", "left", {}, "OpenRLHF keeps the last tokens");
  if (!exact)
    draft.tell(kDiffers, {total},
               "it bounds prompt and completion together, and here each has a bound of its own: "
               "completions may be longer");
}

void set_data(Draft& draft) {
  set_model(draft, named(draft, "pretrain", "actor.model_name_or_path"));
  const std::string_view type = named(draft, "param_dtype", "ds.param_dtype");
  if (draft.truth("bf16") || draft.text(type) == "bf16" || (is_newer(draft) && !draft.given(type)))
    draft.set("model.dtype", "bfloat16", {"bf16", type});
  set_data_files(draft, "data.train_files", named(draft, "prompt_data", "data.prompt_dataset"));
  const std::string_view chat = named(draft, "apply_chat_template", "data.apply_chat_template");
  if (draft.truth(chat)) draft.set("data.prompt_is", "chat", {chat});
  set_lengths(draft);
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
    draft.set("learner.optimizer.min_lr_ratio",
              draft.number("actor.min_lr_ratio").value_or(name == "cosine_with_min_lr" ? 0.1 : 0.0),
              {"actor.min_lr_ratio", kind});
  const std::string_view warmup = named(draft, "lr_warmup_ratio", "actor.lr_warmup_ratio");
  draft.set("learner.optimizer.lr_warmup_steps_ratio", draft.number(warmup).value_or(0.03),
            {warmup});
}

// gae, reinforce and reinforce_baseline are whitened over the batch; rloo, group_norm and dr_grpo
// are not. A reward is clipped after its group's mean was taken, where there is one.
void set_estimator(Draft& draft) {
  const std::string_view key = named(draft, "advantage_estimator", "algo.advantage.estimator");
  const std::string_view plain =
      named(draft, "no_advantage_std_norm", "algo.advantage.no_std_norm");
  const std::string name = draft.text(key);
  const bool several = !draft.is("rollout.n", 1);
  if (name == "group_norm" || name == "dr_grpo" || name == "reinforce_baseline") {
    draft.set("algorithm.adv_estimator", "grpo", {key}, name);
    draft.set("algorithm.norm_adv_by_std_in_grpo", name == "group_norm", {key});
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
  if (name == "reinforce_baseline")
    draft.set("algorithm.advantage_batch_normalize", true, {key},
              "OpenRLHF whitens over the batch");
  const bool whitened = name == "gae" || name == "reinforce" || name == "reinforce_baseline";
  if (draft.truth(plain) && whitened)
    draft.tell(kDiffers, {plain}, "whitening over the batch divides by the standard deviation");
  if (name == "gae" || name == "reinforce") return;
  const std::string_view clip = named(draft, "reward_clip_range", "reward.clip_range");
  draft.drop("reward.clip");
  if (draft.given(clip))
    draft.tell(kDiffers, {clip},
               "OpenRLHF clips what is left of a reward after its group's mean, and `reward.clip` "
               "the reward itself: it is left out");
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
  constexpr std::string_view kLevel = "algo.advantage.is_correction_level";
  constexpr std::string_view kMode = "algo.advantage.is_correction_mode";
  std::string type = draft.text(kind);
  if (draft.given(kLevel) && draft.text(kLevel) != "off") {
    const bool masks = draft.text(kMode) == "mask", sequence = draft.text(kLevel) != "token";
    type = sequence ? "seq-mask-tis" : masks ? "icepop" : "tis";
    if (sequence && !masks)
      return draft.tell(kDiffers, {kLevel, kMode}, "weights of whole sequences are not clipped");
  } else if (!draft.truth(on)) {
    return;
  }
  const std::vector<std::string> bounds = draft.texts(bound);
  const auto at = [&](std::size_t i) {
    return i < bounds.size() ? number_of(json(bounds[i])) : std::nullopt;
  };
  draft.set("algorithm.bypass_mode", false, {on, kLevel});
  draft.set("algorithm.rollout_is", "token", {on, kLevel});
  const bool sequence = type == "seq-mask-tis", newer = !type.empty() || on.find('.') != on.npos;
  draft.set("algorithm.rollout_is_threshold",
            sequence ? 1000000 : at(bounds.size() == 2 ? 1 : 0).value_or(newer ? 5.0 : 2.0),
            {bound, on, kLevel}, sequence ? "the bounds are those of sequences" : "");
  if (type != "icepop" && !sequence) {
    if (newer)
      draft.tell(kDiffers, {bound, on},
                 "OpenRLHF raises weights below its lower bound to it, and here they stay");
    return;
  }
  constexpr std::string_view kGating = "algo.advantage.is_correction_gating";
  if (draft.given(kGating) && draft.text(kGating) != "ratio")
    return draft.set("algorithm.rollout_is_threshold", 1000000, {kGating}, "no bound");
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
    draft.set("algorithm.filter_groups.max_num_gen_batches", 1000000, {on}, "no limit");
  }
  const std::string_view length = named(draft, "overlong_buffer_len", "reward.overlong_buffer_len");
  const std::string_view factor =
      named(draft, "overlong_penalty_factor", "reward.overlong_penalty_factor");
  if (const auto tokens = draft.whole(length)) {
    draft.set("algorithm.overlong_buffer.len", *tokens, {length});
    draft.set("algorithm.overlong_buffer.penalty_factor", draft.number(factor).value_or(1),
              {factor});
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
  draft.set("algorithm.bypass_mode", false, {on}, "the learner computes the old policy");
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
  return {"openrlhf",       "OpenRLHF",          openrlhf_marks(), openrlhf_programs(),
          openrlhf_rules(), openrlhf_defaults(), openrlhf::derive};
}

}  // namespace tandem::translate
