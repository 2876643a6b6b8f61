// prime-rl's TOML, in the names of both generations (`orchestrator.rollouts_per_example` and
// `group_size`). A batch counts completions. Its data and its rewards are packages of Python
// (environments), which have no counterpart, so that an import of prime-rl always differs. Nor has
// its loss, but for settings that leave its masks and its divergence out, and for the loss of its
// earlier versions.
#include <algorithm>

#include "actors/translate/draft.h"
#include "actors/translate/frameworks.h"
#include "actors/translate/shared_keys.h"
#include "actors/translate/shared_rules.h"

namespace tandem::translate {
namespace prime_rl {
namespace {

using nlohmann::json;
using enum Severity;

constexpr std::string_view kEnvironment =
    "environments are packages of Python: write the prompts into data files, and the rubric as a "
    "reward function (`reward.type: python`)";

constexpr Rule kRules[] = {
    derived("max_steps", "learner.total_training_steps"),
    derived("trainer.max_steps", "learner.total_training_steps"),
    derived("orchestrator.max_steps", "learner.total_training_steps"),
    derived("seq_len", "data.max_response_length"),
    derived("orchestrator.seq_len", "data.max_response_length"),
    none("trainer.model.seq_len", kSame, kLayout),
    derived("model.name", "model.path"),
    derived("trainer.model.name", "model.path"),
    derived("orchestrator.model.name", "model.path"),
    derived("inference.model.name", "model.path"),
    none("model.*", kSame, kLayout),
    none("model.lora*", kDiffers, kAdapters),
    none("trainer.model.lora*", kDiffers, kAdapters),
    none("orchestrator.model.lora*", kDiffers, kAdapters),
    derived("trainer.model.ac", "learner.enable_gradient_checkpointing"),
    none("trainer.model.ac.*", kSame, "which layers are computed again"),
    none("trainer.model.*", kSame, kLayout),
    none("trainer.tokenizer.*", kSame, "the tokenizer is that of the model's directory"),
    none("tokenizer.*", kSame, "the tokenizer is that of the model's directory"),
    // Batches
    derived("orchestrator.batch_size", "data.train_batch_size"),
    derived("batch_size", "data.train_batch_size"),
    none("orchestrator.token_batch_size", kDiffers, "a batch is a number of prompts"),
    derived("orchestrator.rollouts_per_example", "rollout.n"),
    derived("orchestrator.group_size", "rollout.n"),
    derived("rollouts_per_example", "rollout.n"),
    none("orchestrator.micro_batch_size", kSame, kLayout),
    none("orchestrator.oversampling_factor", kSame, kEngine),
    none("orchestrator.max_inflight_rollouts", kSame, kEngine),
    none("orchestrator.max_concurrent*", kSame, kEngine),
    none("orchestrator.concurrency.*", kSame, kEngine),
    // Sampling
    derived("orchestrator.sampling.temperature", "rollout.temperature"),
    derived("orchestrator.train.sampling.temperature", "rollout.temperature"),
    none("orchestrator.sampling.temp_scheduler*", kDiffers, "the temperature stays the same"),
    derived("orchestrator.sampling.max_tokens", "data.max_response_length"),
    derived("orchestrator.train.sampling.max_tokens", "data.max_response_length"),
    derived("orchestrator.train.sampling.max_completion_tokens", "data.max_response_length"),
    same("orchestrator.sampling.min_tokens", "rollout.min_tokens"),
    none("orchestrator.sampling.repetition_penalty", kDiffers,
         "a penalty on repetition is not in this version", "1"),
    same("orchestrator.train.sampling.min_tokens", "rollout.min_tokens"),
    none("orchestrator.train.sampling.repetition_penalty", kDiffers,
         "a penalty on repetition is not in this version", "1"),
    none("orchestrator.sampling.extra_body*", kDiffers, "give the sampling in section `rollout`"),
    none("orchestrator.train.sampling.extra_body*", kDiffers,
         "give the sampling in section `rollout`"),
    none("orchestrator.sampling.*", kSame, kEngine),
    none("orchestrator.train.sampling.*", kSame, kEngine),
    // The environment
    derived("orchestrator.env", "reward.type"),
    derived("orchestrator.train.env", "reward.type"),
    derived("orchestrator.train.source", "reward.type"),
    none("orchestrator.algo.type", kDiffers, "distillation and other aims are not in this version",
         "grpo"),
    none("orchestrator.training_mode", kDiffers, "distillation is not in this version", "rl"),
    derived("orchestrator.environment.id", "reward.type"),
    derived("environment.id", "reward.type"),
    none("orchestrator.environment.*", kDiffers, kEnvironment),
    none("environment.*", kDiffers, kEnvironment),
    none("orchestrator.verification.enabled", kDiffers, "completions are always scored", "true"),
    none("orchestrator.renderer.*", kSame, "the model's chat template makes the prompt"),
    none("orchestrator.teacher_model.*", kDiffers, "distillation is not in this version"),
    none("orchestrator.buffer.easy_*", kDiffers, "prompts come as often as each other"),
    none("orchestrator.buffer.hard_*", kDiffers, "prompts come as often as each other"),
    none("orchestrator.buffer.env_ratios", kDiffers, "`data.mixture` has the weights of data sets"),
    derived("orchestrator.buffer.online_difficulty_filtering", "algorithm.filter_groups.enable"),
    none("orchestrator.train.filter_zero_advantages", kSame,
         "a group whose rewards are all the same has no gradient"),
    none("orchestrator.buffer.*", kSame, kEngine),
    derived("orchestrator.filters", "algorithm.filter_groups.enable"),
    none("orchestrator.advantage.type", kDiffers,
         "an estimator of one's own is not in this version", "default"),
    none("orchestrator.advantage.length_weighted_mean", kDiffers,
         "the mean of a group weighs its completions equally", "false"),
    // Asynchrony
    derived("orchestrator.max_off_policy_steps", "async.max_staleness"),
    derived("max_off_policy_steps", "async.max_staleness"),
    derived("max_async_level", "async.lookahead"),
    derived("orchestrator.max_async_level", "async.lookahead"),
    derived("trainer.max_async_level", "async.lookahead"),
    none("orchestrator.strict_async_level", kSame, kEngine),
    none("weight_broadcast.*", kSame, "`weight_broadcast.type: auto` finds the way of the weights"),
    none("trainer.weight_broadcast.*", kSame,
         "`weight_broadcast.type: auto` finds the way of the weights"),
    none("orchestrator.weight_broadcast.*", kSame,
         "`weight_broadcast.type: auto` finds the way of the weights"),
    // The optimizer and the loss
    same("trainer.optim.lr", "learner.optimizer.lr"),
    same("trainer.optim.weight_decay", "learner.optimizer.weight_decay"),
    same("trainer.optim.max_norm", "learner.optimizer.grad_clip"),
    derived("trainer.optim.betas1", "learner.optimizer.betas"),
    derived("trainer.optim.betas2", "learner.optimizer.betas"),
    none("trainer.optim.type", kDiffers, kAdamW, "adamw"),
    none("trainer.optim.*", kDiffers, kAdamW),
    derived("trainer.scheduler.type", "learner.optimizer.lr_scheduler_type"),
    derived("trainer.scheduler.warmup_steps", "learner.optimizer.lr_warmup_steps"),
    derived("trainer.scheduler.min_lr", "learner.optimizer.min_lr_ratio"),
    derived("trainer.scheduler.decay_steps", "learner.optimizer.lr_scheduler_type"),
    derived("trainer.loss.type", "algorithm.loss_mode"),
    derived("trainer.loss.mask_ratio_low", "algorithm.rollout_rs_threshold_lower"),
    derived("trainer.loss.mask_ratio_high", "algorithm.rollout_rs_threshold"),
    derived("trainer.loss.sequence_mask_ratio_low", "algorithm.rollout_token_veto_threshold"),
    derived("trainer.loss.ratio_type", "algorithm.rollout_rs"),
    derived("trainer.loss.kl_tau", "algorithm.loss_mode"),
    none("trainer.loss.kl_mask_type", kSame, "a setting of the term that `kl_tau` weighs"),
    derived("trainer.loss.dppo_mask_low", "algorithm.clip_ratio_low"),
    derived("trainer.loss.dppo_mask_high", "algorithm.clip_ratio_high"),
    derived("trainer.loss.ipo_mask_low", "algorithm.clip_ratio_low"),
    derived("trainer.loss.ipo_mask_high", "algorithm.clip_ratio_high"),
    derived("trainer.loss.adv_tau", "algorithm.loss_mode"),
    none("trainer.loss.teacher_tau", kDiffers, "distillation is not in this version", "0"),
    none("trainer.loss.*", kDiffers, "a setting of prime-rl's loss"),
    // Checkpoints and evaluation
    derived("ckpt.interval", "learner.save_freq"),
    derived("trainer.ckpt.interval", "learner.save_freq"),
    same("ckpt.keep_last", "learner.max_ckpt_to_keep"),
    same("trainer.ckpt.keep_last", "learner.max_ckpt_to_keep"),
    none("ckpt.*", kSame, kLogs),
    none("ckpt", kSame, kLogs),
    none("trainer.ckpt*", kSame, kLogs),
    none("orchestrator.ckpt*", kSame, kLogs),
    derived("orchestrator.eval.interval", "learner.test_freq"),
    derived("orchestrator.eval.rollouts_per_example", "eval.n"),
    derived("orchestrator.eval.sampling.temperature", "eval.temperature"),
    same("orchestrator.eval.eval_base_model", "learner.val_before_train"),
    none("orchestrator.eval.env", kDiffers, kEnvironment),
    none("orchestrator.eval.*", kSame, kLogs),
    none("orchestrator.val.*", kSame, kLogs),
    // The run
    same("orchestrator.seed", "seed"),
    same("wandb.project", "tracking.project"),
    same("wandb.name", "name"),
    same("wandb.entity", "tracking.entity"),
    same("wandb.group", "tracking.group"),
    none("wandb.*", kSame, kLogs),
    none("trainer.wandb.*", kSame, kLogs),
    none("orchestrator.wandb.*", kSame, kLogs),
    none("log.*", kSame, kLogs),
    none("trainer.log.*", kSame, kLogs),
    none("orchestrator.log.*", kSame, kLogs),
    none("output_dir", kSame, kLogs),
    none("clean*", kSame, kLogs),
    none("inference.*", kSame, kEngine),
    none("inference", kSame, kEngine),
    none("deployment.*", kSame, kLayout),
    none("inference_gpu_ids", kSame, kLayout),
    none("trainer_gpu_ids", kSame, kLayout),
    none("trainer.data.*", kSame, kLayout),
    none("trainer.rollout_transport.*", kSame, kLayout),
    none("orchestrator.rollout_transport.*", kSame, kLayout),
    none("trainer.dist_timeout_seconds", kSame, kLayout),
    none("orchestrator.client.*", kSame, kEngine),
    none("orchestrator.use_token_client", kSame, kEngine),
    none("orchestrator.tasks_per_minute", kSame, kEngine),
    none("orchestrator.num_train_workers", kSame, kLayout),
    none("orchestrator.output_dir", kSame, kLogs),
    none("trainer.output_dir", kSame, kLogs),
    none("launcher.*", kSame, kLayout),
};

constexpr ForeignDefault kDefaults[] = {
    {"seq_len", "2048"},
    {"orchestrator.batch_size", "128"},
    {"orchestrator.rollouts_per_example", "1"},
    {"trainer.optim.lr", "1e-6"},
    {"trainer.optim.weight_decay", "0.01"},
    {"trainer.optim.betas1", "0.9"},
    {"trainer.optim.betas2", "0.999"},
    {"trainer.scheduler.type", R"("constant")"},
    {"orchestrator.max_off_policy_steps", "8"},
};

constexpr std::string_view kMarks[] = {"orchestrator.", "trainer.optim.", "inference_gpu_ids",
                                       "deployment.num_infer_gpus"};
constexpr std::string_view kPrograms[] = {"prime_rl"};

// The first of these keys that has a value.
std::string_view first(const Draft& draft, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys)
    if (draft.given(key)) return key;
  for (const std::string_view key : keys)
    if (draft.value(key)) return key;
  return *keys.begin();
}

void set_model_and_lengths(Draft& draft) {
  set_model(draft, first(draft, {"model.name", "trainer.model.name", "orchestrator.model.name",
                                 "inference.model.name"}));
  draft.set("model.dtype", "bfloat16", {}, "prime-rl computes in it");
  if (draft.config().find("trainer.model.ac") || draft.config().has_section("trainer.model.ac"))
    draft.set("learner.enable_gradient_checkpointing", true, {"trainer.model.ac"});
  const std::string_view total = first(draft, {"orchestrator.seq_len", "seq_len"});
  const std::string_view limit =
      first(draft, {"orchestrator.train.sampling.max_completion_tokens",
                    "orchestrator.train.sampling.max_tokens", "orchestrator.sampling.max_tokens"});
  const auto tokens = draft.whole(total).value_or(2048);
  draft.set("data.max_response_length", draft.whole(limit).value_or(tokens), {limit, total});
  set_open_prompt_limit(draft, tokens);
  draft.tell(kDiffers, {total},
             "it bounds prompt and completion together, and here each has a bound of its own");
}

void set_batches(Draft& draft) {
  const std::string_view group = first(
      draft,
      {"orchestrator.group_size", "orchestrator.rollouts_per_example", "rollouts_per_example"});
  const std::string_view batch = first(draft, {"batch_size", "orchestrator.batch_size"});
  const auto n = std::max<std::int64_t>(draft.whole(group).value_or(1), 1);
  const auto completions = draft.whole(batch).value_or(128);
  draft.set("rollout.n", n, {group});
  if (completions % n != 0)
    draft.tell(kDiffers, {batch, group},
               "a batch is no whole number of groups: it is rounded down");
  draft.set("data.train_batch_size", std::max<std::int64_t>(completions / n, 1), {batch, group},
            "completions by the group");
  const std::string_view steps =
      first(draft, {"max_steps", "trainer.max_steps", "orchestrator.max_steps"});
  if (const auto most = draft.whole(steps))
    draft.set("learner.total_training_steps", *most, {steps});
  else
    draft.tell(kToDo, {"max_steps"},
               "prime-rl runs until it is stopped: set `learner.total_training_steps`");
  const std::string_view temperature = first(
      draft, {"orchestrator.train.sampling.temperature", "orchestrator.sampling.temperature"});
  if (draft.number(temperature))
    draft.set("rollout.temperature", *draft.number(temperature), {temperature});
}

void set_estimator(Draft& draft) {
  draft.set("algorithm.adv_estimator", draft.is("rollout.n", 1) ? "reinforce_plus_plus" : "grpo",
            {}, "the mean of the group is the baseline");
  if (draft.is("rollout.n", 1))
    draft.tell(kDiffers, {"orchestrator.rollouts_per_example"},
               "a group of one has no baseline: reinforce_plus_plus takes the batch's");
  else
    draft.set("algorithm.scale_rewards", "none", {}, "prime-rl divides by no deviation");
  const std::string_view easy = "orchestrator.buffer.online_difficulty_filtering";
  if (draft.truth(easy)) draft.set("algorithm.filter_groups.enable", true, {easy});
  constexpr std::string_view kFilters = "orchestrator.filters";
  const json* const filters = draft.value(kFilters);
  const bool enforced =
      filters && filters->is_array() && std::ranges::any_of(*filters, [](const json& one) {
        return one.is_object() && one.contains("enforce") &&
               truth_of(one["enforce"]).value_or(false);
      });
  if (filters)
    draft.tell(enforced ? kDiffers : kSame, {kFilters},
               "completions of gibberish and repetition are not looked for");
}

// REINFORCE with the importance weights as they are: no ratio is clipped.
void set_unclipped(Draft& draft, Draft::Keys keys) {
  draft.set("algorithm.clip_ratio_low", 1, keys, "no bound");
  draft.set("algorithm.clip_ratio_high", 1000000, keys, "no bound");
  draft.set("algorithm.clip_ratio_c", json(), keys, "no dual clip");
}

// The loss until early 2026: importance weights of the current over the behaviour policy, without a
// clip; tokens beyond two bounds are masked, and completions with one token below a third.
bool set_masked_loss(Draft& draft) {
  constexpr std::string_view kLow = "trainer.loss.mask_ratio_low";
  constexpr std::string_view kHigh = "trainer.loss.mask_ratio_high";
  constexpr std::string_view kVeto = "trainer.loss.sequence_mask_ratio_low";
  constexpr std::string_view kLevel = "trainer.loss.ratio_type";
  const double high = draft.number(kHigh).value_or(8);
  const bool of_tokens = !draft.given(kLevel) || draft.text(kLevel) == "token";
  if (!draft.given(kLow) && !draft.given(kHigh) && !draft.given(kVeto) && !draft.given(kLevel))
    return false;
  if (!of_tokens || high < 1 || draft.number("trainer.loss.kl_tau").value_or(0) != 0) return false;
  set_unclipped(draft, {kHigh, kLow});
  set_rejection(draft, {{"token", draft.number(kLow).value_or(0.125), high, kHigh, kLow, kHigh}});
  if (const auto veto = draft.number(kVeto); veto && *veto > 0)
    draft.set("algorithm.rollout_token_veto_threshold", *veto, {kVeto});
  return true;
}

// The loss since then masks tokens whose probability moved by more than two bounds, in the
// direction of their advantage (DPPO, arXiv:2602.04879), and adds the square of the log-ratio. No
// difference of probabilities is above 1: with such bounds, and without that term, weights are all
// there is.
bool set_open_loss(Draft& draft) {
  const auto at = [&](const char* low_or_high) {
    for (const char* name : {"dppo", "ipo"})
      if (const auto bound = draft.number("trainer.loss." + std::string(name) + low_or_high))
        return *bound;
    return 0.2;
  };
  constexpr std::string_view kTau = "trainer.loss.kl_tau", kAdvantage = "trainer.loss.adv_tau";
  if (at("_mask_low") < 1 || at("_mask_high") < 1 || draft.number(kTau).value_or(1e-3) != 0 ||
      draft.number(kAdvantage).value_or(1) != 1)
    return false;
  set_unclipped(draft, {"trainer.loss.dppo_mask_high", "trainer.loss.dppo_mask_low", kTau});
  return true;
}

void set_loss(Draft& draft) {
  const std::string type = draft.text("trainer.loss.type");
  const bool own = type.empty() || type == "default";
  if (own && (set_masked_loss(draft) || set_open_loss(draft))) return;
  draft.tell(kDiffers,
             {"trainer.loss", "trainer.loss.type", "trainer.loss.ratio_type",
              "trainer.loss.mask_ratio_low", "trainer.loss.mask_ratio_high",
              "trainer.loss.sequence_mask_ratio_low", "trainer.loss.kl_tau",
              "trainer.loss.dppo_mask_low", "trainer.loss.dppo_mask_high",
              "trainer.loss.ipo_mask_low", "trainer.loss.ipo_mask_high", "trainer.loss.adv_tau"},
             "prime-rl's loss (" + (type.empty() ? std::string("default") : type) +
                 ") leaves tokens out whose probability moved too far in the direction of their "
                 "advantage, and has a term of its own against divergence: the clip of `vanilla`, "
                 "with Tandem's bounds, stands in its place");
}

void set_schedule(Draft& draft) {
  const std::string at = "trainer.scheduler.";
  const std::string type = draft.text(at + "type");
  draft.set("learner.optimizer.lr_scheduler_type", type, {at + "type"});
  draft.set("learner.optimizer.lr_warmup_steps",
            draft.whole(at + "warmup_steps").value_or(type == "constant" ? 0 : 10),
            {at + "warmup_steps", at + "type"});
  const double lr = draft.number("trainer.optim.lr").value_or(1e-6);
  if (type != "constant" && lr > 0)
    draft.set("learner.optimizer.min_lr_ratio", draft.number(at + "min_lr").value_or(0) / lr,
              {at + "min_lr", at + "type"});
  if (type == "linear")
    draft.tell(
        kDiffers, {at + "decay_steps"},
        "the rate falls from the warm-up's end on, and prime-rl's over its last steps alone");
  draft.set("learner.optimizer.betas",
            json::array({draft.number("trainer.optim.betas1").value_or(0.9),
                         draft.number("trainer.optim.betas2").value_or(0.999)}),
            {"trainer.optim.betas1", "trainer.optim.betas2"});
}

void set_environment(Draft& draft) {
  const std::string_view key =
      first(draft, {"orchestrator.train.env", "orchestrator.train.source", "orchestrator.env",
                    "orchestrator.environment.id", "environment.id"});
  std::string names;
  if (const json* const list = draft.value(key); list && list->is_array())
    for (const json& one : *list)
      for (const char* field : {"name", "id"})
        if (one.is_object() && one.contains(field)) {
          names += (names.empty() ? "" : ", ") + text_of(one[field]);
          break;
        }
  draft.tell(kDiffers, {key},
             std::string(kEnvironment) + (names.empty() ? "" : " (" + names + ")"));
}

void set_run(Draft& draft) {
  const std::string_view saves = first(draft, {"ckpt.interval", "trainer.ckpt.interval"});
  draft.set("learner.save_freq", draft.whole(saves).value_or(0), {saves});
  const std::string_view evaluates = "orchestrator.eval.interval";
  draft.set("learner.test_freq", draft.whole(evaluates).value_or(0), {evaluates});
  const std::string_view temperature = "orchestrator.eval.sampling.temperature";
  if (const auto value = draft.number(temperature); value && *value > 0) {
    draft.set("eval.temperature", *value, {temperature});
    if (const auto n = draft.whole("orchestrator.eval.rollouts_per_example"))
      draft.set("eval.n", *n, {"orchestrator.eval.rollouts_per_example"});
  }
  if (draft.config().has_section("wandb") || draft.config().find("wandb"))
    draft.set("trackers", json::array({"tensorboard", "wandb"}), {"wandb.project", "wandb.name"});
  const std::string_view level =
      first(draft, {"orchestrator.max_async_level", "max_async_level", "trainer.max_async_level"});
  const std::string_view stale =
      first(draft, {"max_off_policy_steps", "orchestrator.max_off_policy_steps"});
  const auto ahead = draft.whole(level).value_or(1);
  const auto most = ahead == 0 ? 0 : draft.whole(stale).value_or(8);
  draft.set("async.max_staleness", std::max(most, ahead), {stale});
  draft.set("async.lookahead", std::min(ahead, std::max(most, ahead)), {level},
            draft.given(level) ? "" : "generation is one step ahead");
}

void derive(Draft& draft) {
  set_model_and_lengths(draft);
  set_batches(draft);
  set_estimator(draft);
  set_loss(draft);
  set_schedule(draft);
  set_environment(draft);
  set_run(draft);
}

}  // namespace
}  // namespace prime_rl

Dialect prime_rl_dialect() {
  return {"prime-rl",       "prime-rl",          prime_rl::kMarks, prime_rl::kPrograms,
          prime_rl::kRules, prime_rl::kDefaults, prime_rl::derive};
}

}  // namespace tandem::translate
