// verl: YAML, or Hydra overrides of a script. Its keys that do not stand alone:
//
//   updates    data.train_batch_size prompts are a step; ppo_mini_batch_size counts prompts too,
//              and each mini-batch is an update; the learning rate's schedule counts steps
//   the clip   clip_ratio_low and _high, whose own defaults hide clip_ratio
//   the KL     a term of the loss, or of the reward, by two switches
//   the score  a Python function, or verl's own by `data_source`
//   fully async training counts prompts in other keys, and staleness as a share of samples
#include <algorithm>
#include <cmath>
#include <sstream>

#include "actors/job/key_fields.h"
#include "actors/translate/draft.h"
#include "actors/translate/frameworks.h"
#include "actors/translate/shared_keys.h"
#include "actors/translate/verl_keys.h"

namespace tandem::translate {
namespace verl {
namespace {

using nlohmann::json;
using enum Severity;

void set_data(Draft& draft) {
  set_model(draft, "actor_rollout_ref.model.path");
  set_data_files(draft, "data.train_files", "data.train_files");
  set_data_files(draft, "data.val_files", "data.val_files");
  draft.set("data.answer_key", "reward_model.ground_truth", {}, "where verl's data files have it");
  // Where long prompts are left out, nothing is cut.
  if (!draft.truth("data.filter_overlong_prompts"))
    draft.set("data.truncation", draft.text("data.truncation"), {"data.truncation"});
  set_trackers(draft, "trainer.logger");
}

// The advantages of estimators that need no critic.
void set_estimator(Draft& draft) {
  constexpr std::string_view kKey = "algorithm.adv_estimator";
  std::string name = draft.text(kKey);
  const auto n = draft.whole("actor_rollout_ref.rollout.n").value_or(1);
  if (name == "gae") {
    const std::string instead = n > 1 ? "grpo" : "reinforce_plus_plus";
    draft.tell(kDiffers, {kKey},
               "PPO with a critic (gae, verl's default) is not in this version: `" + instead +
                   "` stands in its place, which takes its baseline from the " +
                   (n > 1 ? "group" : "batch"));
    draft.set("algorithm.adv_estimator", instead, {kKey}, "gae needs a critic");
    return;
  }
  if (name.ends_with("_vectorized")) name.resize(name.size() - std::string("_vectorized").size());
  if (name == "reinforce_plus_plus_baseline") {
    draft.set("algorithm.adv_estimator", "grpo", {kKey}, "the mean of the group is the baseline");
    draft.set("algorithm.norm_adv_by_std_in_grpo", false, {kKey});
    draft.set("algorithm.advantage_batch_normalize", true, {kKey});
    return;
  }
  if (name != "grpo" && name != "rloo" && name != "reinforce_plus_plus") {
    draft.tell(kDiffers, {kKey},
               "the estimator `" + name +
                   "` is not in this version: grpo stands "
                   "in its place");
    name = "grpo";
  }
  draft.set("algorithm.adv_estimator", name, {kKey});
  if (name == "grpo")
    draft.set("algorithm.norm_adv_by_std_in_grpo", draft.truth("algorithm.norm_adv_by_std_in_grpo"),
              {"algorithm.norm_adv_by_std_in_grpo"});
}

void set_loss(Draft& draft) {
  constexpr std::string_view kMode = "actor_rollout_ref.actor.policy_loss.loss_mode";
  std::string mode = draft.text(kMode);
  if (mode != "vanilla" && mode != "gspo" && mode != "cispo") {
    draft.tell(kDiffers, {kMode},
               "the loss `" + mode +
                   "` is not in this version: vanilla stands "
                   "in its place");
    mode = "vanilla";
  }
  draft.set("algorithm.loss_mode", mode, {kMode});
  // gspo averages over sequences; until 0.9 verl's did so whatever loss_agg_mode says.
  constexpr std::string_view kAgg = "actor_rollout_ref.actor.loss_agg_mode";
  if (mode != "gspo")
    draft.set("algorithm.loss_agg_mode", draft.text(kAgg), {kAgg});
  else if (draft.text(kAgg) != "seq-mean-token-mean")
    draft.tell(kDiffers, {kAgg},
               "since 0.9 verl averages gspo as it says; here each sequence counts the same");
  Clip clip{draft.number("actor_rollout_ref.actor.clip_ratio_low").value_or(0.2),
            draft.number("actor_rollout_ref.actor.clip_ratio_high").value_or(0.2),
            draft.number("actor_rollout_ref.actor.clip_ratio_c")};
  const auto both = draft.number("actor_rollout_ref.actor.clip_ratio");
  if (draft.given("actor_rollout_ref.actor.clip_ratio") && both) {
    const bool low = draft.given("actor_rollout_ref.actor.clip_ratio_low"),
               high = draft.given("actor_rollout_ref.actor.clip_ratio_high");
    if (!low) clip.low = *both;
    if (!high) clip.high = *both;
    if ((!low || !high) && *both != 0.2)
      draft.tell(kDiffers, {"actor_rollout_ref.actor.clip_ratio"},
                 "newer versions of verl read it only where clip_ratio_low and clip_ratio_high are "
                 "null, and clip at 0.2; it is taken as it was meant");
  }
  set_clip(draft, clip,
           {"actor_rollout_ref.actor.clip_ratio_low", "actor_rollout_ref.actor.clip_ratio"},
           {"actor_rollout_ref.actor.clip_ratio_high", "actor_rollout_ref.actor.clip_ratio"},
           {"actor_rollout_ref.actor.clip_ratio_c"});
}

void set_kl(Draft& draft) {
  if (draft.truth("actor_rollout_ref.actor.use_kl_loss")) {
    draft.set("algorithm.use_kl_loss", true, {"actor_rollout_ref.actor.use_kl_loss"});
    draft.set("algorithm.kl_loss_coef",
              draft.number("actor_rollout_ref.actor.kl_loss_coef").value_or(0.001),
              {"actor_rollout_ref.actor.kl_loss_coef"});
    draft.set("algorithm.kl_loss_type", draft.text("actor_rollout_ref.actor.kl_loss_type"),
              {"actor_rollout_ref.actor.kl_loss_type"});
  }
  if (!draft.truth("algorithm.use_kl_in_reward")) return;
  draft.set("algorithm.use_kl_in_reward", true, {"algorithm.use_kl_in_reward"});
  draft.set("algorithm.kl_ctrl.kl_coef", draft.number("algorithm.kl_ctrl.kl_coef").value_or(0.001),
            {"algorithm.kl_ctrl.kl_coef"});
  draft.set("algorithm.kl_penalty", draft.text("algorithm.kl_penalty"), {"algorithm.kl_penalty"});
  if (draft.text("algorithm.kl_ctrl.type") == "adaptive")
    draft.tell(kDiffers, {"algorithm.kl_ctrl.type"}, "the weight of the divergence stays the same");
  if (draft.is("algorithm.adv_estimator", "grpo") &&
      draft.is("algorithm.norm_adv_by_std_in_grpo", true))
    draft.tell(kDiffers, {"algorithm.use_kl_in_reward"},
               "the divergence is taken from a group's advantages after their division by the "
               "standard deviation, and verl takes it before");
}

// "0.5_5.0" is a lower and an upper bound.
struct Bounds {
  std::optional<double> lower, upper;
};
Bounds bounds_of(const std::string& text) {
  const std::size_t cut = text.find('_');
  if (cut == std::string::npos) return {{}, number_of(json(text))};
  return {number_of(json(text.substr(0, cut))), number_of(json(text.substr(cut + 1)))};
}

constexpr std::string_view kRejects = "algorithm.rollout_correction.rollout_rs";
constexpr std::string_view kRejectsBound = "algorithm.rollout_correction.rollout_rs_threshold";
constexpr std::string_view kRejectsLower =
    "algorithm.rollout_correction.rollout_rs_threshold_lower";

// The parts of "token_k1, seq_mean_k3", or of a list.
std::vector<std::string> parts_of(const Draft& draft, std::string_view key) {
  std::vector<std::string> parts;
  for (const std::string& text : draft.texts(key)) {
    std::istringstream words(text);
    for (std::string part; std::getline(words, part, ',');) {
      const std::size_t begin = part.find_first_not_of(' ');
      if (begin == part.npos) continue;
      part = part.substr(begin, part.find_last_not_of(' ') - begin + 1);
      if (part != "null" && part != "None") parts.push_back(part);
    }
  }
  return parts;
}

constexpr double kNoUpperBound = 1000000;  // no ratio that matters is above it

// One of verl's criteria with its threshold, "0.5_2.0" or one number.
Criterion criterion_of(const Draft& draft, const std::string& name, const std::string& threshold) {
  const Bounds bounds = bounds_of(threshold);
  Criterion one{name, bounds.lower, bounds.upper, kRejects, kRejectsBound, kRejectsBound};
  // The forms with k1 are of behaviour over proximal (verl since 0.7.1), and here it is the
  // reverse.
  if (name.ends_with("_k1") && bounds.lower && bounds.upper && *bounds.upper > 0) {
    one.lower = 1 / *bounds.upper;
    one.upper = *bounds.lower > 1 / kNoUpperBound ? 1 / *bounds.lower : kNoUpperBound;
  }
  if (const auto lower = draft.number(kRejectsLower); lower && !name.ends_with("_k1")) {
    one.lower = lower;
    one.lower_key = kRejectsLower;
  }
  return one;
}

// Adds the criteria that verl names; each has its threshold, or all have one. Returns whether one
// of them has no upper bound.
bool add_criteria(Draft& draft, std::vector<Criterion>& criteria) {
  bool unbounded = false;
  const std::vector<std::string> names = parts_of(draft, kRejects);
  const std::vector<std::string> thresholds = parts_of(draft, kRejectsBound);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!is_criterion(names[i])) {
      draft.tell(kDiffers, {kRejects},
                 "the criterion `" + names[i] +
                     "` is not in this version: nothing is rejected "
                     "by it");
      continue;
    }
    const bool shared = thresholds.size() == 1;
    const std::string threshold = shared                  ? thresholds[0]
                                  : i < thresholds.size() ? thresholds[i]
                                                          : std::string();
    const Criterion one = criterion_of(draft, names[i], threshold);
    if (bounds_ratio(names[i]) && (one.upper.value_or(1) < 1 || one.lower.value_or(1) > 1))
      draft.tell(kDiffers, {kRejectsBound},
                 "`" + threshold +
                     "` leaves no token whose probabilities are the same: nothing "
                     "is rejected by `" +
                     names[i] + "`");
    else
      criteria.push_back(one);
    unbounded = unbounded || (names[i].ends_with("_k1") && one.upper == kNoUpperBound);
  }
  return unbounded;
}

void set_correction(Draft& draft) {
  constexpr std::string_view kIs = "algorithm.rollout_correction.rollout_is";
  constexpr std::string_view kBound = "algorithm.rollout_correction.rollout_is_threshold";
  constexpr std::string_view kBypass = "algorithm.rollout_correction.bypass_mode";
  constexpr std::string_view kNormalizes =
      "algorithm.rollout_correction.rollout_is_batch_normalize";
  constexpr std::string_view kVeto = "algorithm.rollout_correction.rollout_token_veto_threshold";
  std::vector<Criterion> criteria;
  std::string remark = "a rejected token stays in the denominators";
  if (draft.given(kBypass)) draft.set("algorithm.bypass_mode", draft.truth(kBypass), {kBypass});
  std::string weighs = draft.text(kIs);
  const bool bypass =
      draft.given(kBypass) ? draft.truth(kBypass) : draft.config().has_section("async_training");
  if (bypass && !weighs.empty() && weighs != "null" && weighs != "None") {
    draft.tell(kSame, {kIs}, "with bypass_mode verl computes these weights for its metrics alone");
    weighs.clear();
  }
  if (const auto cap = draft.number("actor_rollout_ref.actor.tis_imp_ratio_cap"); cap && *cap > 0) {
    weighs = "token";
    draft.set("algorithm.rollout_is_threshold", *cap,
              {"actor_rollout_ref.actor.tis_imp_ratio_cap"});
  }
  if (weighs == "token" || weighs == "sequence") {
    draft.set("algorithm.rollout_is", weighs, {kIs, "actor_rollout_ref.actor.tis_imp_ratio_cap"});
    draft.set("algorithm.bypass_mode", false, {kBypass}, "rollout_is weighs against it");
    const Bounds bounds = bounds_of(draft.text(kBound));
    if (bounds.upper) draft.set("algorithm.rollout_is_threshold", *bounds.upper, {kBound});
    if (bounds.lower) {  // IcePop: weights beyond the bounds are 0
      criteria.push_back({weighs, bounds.lower, bounds.upper, kBound, kBound, kBound});
      remark = "two bounds reject (IcePop)";
    }
    if (draft.truth(kNormalizes))
      draft.set("algorithm.rollout_is_batch_normalize", true, {kNormalizes});
  }
  if (add_criteria(draft, criteria)) remark += "; 1 / a lower bound of 0 is no upper one";
  set_rejection(draft, criteria, remark);
  if (const auto veto = draft.number(kVeto))
    draft.set("algorithm.rollout_token_veto_threshold", *veto, {kVeto});
}

void set_filter(Draft& draft) {
  if (!draft.truth("algorithm.filter_groups.enable")) return;
  const std::string metric = draft.text("algorithm.filter_groups.metric");
  draft.set("algorithm.filter_groups.metric", metric == "acc" ? "acc" : "score",
            {"algorithm.filter_groups.metric"});
  const auto most = draft.whole("algorithm.filter_groups.max_num_gen_batches").value_or(0);
  draft.set("algorithm.filter_groups.max_num_gen_batches", most > 0 ? most : 1000000,
            {"algorithm.filter_groups.max_num_gen_batches"}, most > 0 ? "" : "no limit");
}

// verl's own scores by data_source, or a function.
void set_reward(Draft& draft) {
  const bool newer = draft.given("reward.custom_reward_function.path");
  const std::string section = newer ? "reward.custom_reward_function." : "custom_reward_function.";
  const std::string path = draft.text(section + "path");
  std::string manager = draft.text("reward.reward_manager.name");
  if (manager.empty()) manager = draft.text("reward_model.reward_manager");
  if (!path.empty()) {
    std::string name = draft.text(section + "name");
    if (name.empty()) name = "compute_score";
    draft.set("reward.type", "python", {section + "path"});
    draft.set("reward.function", path + ":" + name, {section + "path", section + "name"});
    draft.set("reward.signature", manager == "batch" ? "verl_batch" : "verl", {section + "path"});
    return;
  }
  bool all_math = true;
  for (const std::string& file : draft.texts("data.train_files"))
    all_math = all_math && is_math_data(file);
  draft.set("reward.type", "math", {}, "in place of verl's scores by data_source");
  draft.tell(all_math ? kSame : kDiffers, {"data.train_files"},
             all_math ? "verl scores these data by rules of its own for each data_source; `math` "
                        "takes the final answer, also without `####` or `\\boxed`"
                      : "verl scores by rules of its own for each data_source, which `math` stands "
                        "in place of: for other data than mathematical problems write a function "
                        "(`reward.type: python`)");
}

void set_overlong(Draft& draft) {
  const std::string sections[] = {"reward_model.overlong_buffer.",
                                  "reward_model.reward_kwargs.overlong_buffer_cfg.",
                                  "reward.reward_kwargs.overlong_buffer_cfg."};
  for (const std::string& section : sections) {
    if (!draft.truth(section + "enable")) continue;
    if (const auto length = draft.whole(section + "len"))
      draft.set("algorithm.overlong_buffer.len", *length, {section + "len"});
    if (const auto factor = draft.number(section + "penalty_factor"))
      draft.set("algorithm.overlong_buffer.penalty_factor", *factor, {section + "penalty_factor"});
  }
  for (const std::string_view key :
       {"reward_model.reward_kwargs.max_resp_len", "reward.reward_kwargs.max_resp_len"})
    if (const auto limit = draft.whole(key); limit && draft.find("algorithm.overlong_buffer.len") &&
                                             limit != draft.whole("data.max_response_length"))
      draft.tell(kDiffers, {key}, "the penalty rises towards `data.max_response_length`");
}

void set_schedule(Draft& draft) {
  constexpr std::string_view kOptim = "actor_rollout_ref.actor.optim.";
  const std::string at(kOptim);
  const auto steps = draft.whole(at + "lr_warmup_steps").value_or(-1);
  if (steps >= 0)
    draft.set("learner.optimizer.lr_warmup_steps", steps, {at + "lr_warmup_steps"});
  else if (const auto ratio = draft.number(at + "lr_warmup_steps_ratio"); ratio && *ratio > 0)
    draft.set("learner.optimizer.lr_warmup_steps_ratio", *ratio, {at + "lr_warmup_steps_ratio"});
  else
    draft.set("learner.optimizer.lr_warmup_steps", 0, {at + "lr_warmup_steps"});
  const bool older = draft.given(at + "warmup_style");
  const std::string style = draft.text(at + (older ? "warmup_style" : "lr_scheduler_type"));
  draft.set("learner.optimizer.lr_scheduler_type", style,
            {at + "warmup_style", at + "lr_scheduler_type"});
  if (style != "constant")
    draft.set("learner.optimizer.min_lr_ratio", draft.number(at + "min_lr_ratio").value_or(0),
              {at + "min_lr_ratio"});
  const bool newer =
      draft.given(at + "clip_grad") && !draft.given("actor_rollout_ref.actor.grad_clip");
  const std::string clip = newer ? at + "clip_grad" : "actor_rollout_ref.actor.grad_clip";
  if (const json* const norm = draft.value(clip))
    draft.set("learner.optimizer.grad_clip", *norm, {clip});
}

void set_evaluation(Draft& draft) {
  const std::string at = "actor_rollout_ref.rollout.val_kwargs.";
  const auto frequency =
      draft.whole(draft.given("rollout.test_freq") ? "rollout.test_freq" : "trainer.test_freq");
  draft.set("learner.test_freq", std::max<std::int64_t>(frequency.value_or(0), 0),
            {"trainer.test_freq", "rollout.test_freq"});
  const double temperature =
      draft.truth(at + "do_sample") ? draft.number(at + "temperature").value_or(0) : 0;
  draft.set("eval.temperature", temperature, {at + "do_sample", at + "temperature"});
  if (temperature == 0) return;  // all completions of a prompt are the same
  draft.set("eval.n", draft.whole(at + "n").value_or(1), {at + "n"});
  draft.set("eval.top_p", draft.number(at + "top_p").value_or(1), {at + "top_p"});
  draft.set("eval.top_k", std::max<std::int64_t>(draft.whole(at + "top_k").value_or(0), 0),
            {at + "top_k"});
}

void set_length(Draft& draft) {
  if (draft.whole("trainer.total_training_steps")) {
    if (draft.given("trainer.total_epochs"))
      draft.tell(kSame, {"trainer.total_epochs"},
                 "`learner.total_training_steps` decides; verl ends with whichever comes first");
    return;
  }
  draft.set("data.total_epochs", draft.whole("trainer.total_epochs").value_or(30),
            {"trainer.total_epochs"});
}

// Between two versions, of m updates, verl generates (1 + threshold) m batches, less the stale ones
// that are left: `async.lookahead` m (1 + threshold) - 1 admits as many.
void set_lookahead(Draft& draft, std::int64_t period) {
  constexpr std::string_view kKey = "async_training.staleness_threshold";
  const double given = draft.number(kKey).value_or(0.1);
  const double share = std::isfinite(given) ? std::clamp(given, 0.0, job::kStalenessMax) : 0.1;
  constexpr double kRounding = 1e-9;                         // of a product like 0.7 * 10
  const double stale = share * static_cast<double>(period);  // batches
  const double whole = std::ceil(stale - kRounding);
  const double ahead = static_cast<double>(period) + whole - 1;
  const double until = static_cast<double>(period) * (1 + std::ceil(share)) - 1;
  const auto within = [](double steps) {
    return static_cast<std::int64_t>(std::min(steps, job::kStalenessMax));
  };
  draft.set("async.lookahead", within(ahead), {kKey}, "trigger_parameter_sync_step (1 + it) - 1");
  draft.set("async.max_staleness", within(until), {kKey},
            "updates until older weights are used up");
  if (given != share || ahead > job::kStalenessMax)
    return draft.tell(kDiffers, {kKey}, "`async.lookahead` has the nearest number that there is");
  if (whole - stale > kRounding) {
    std::ostringstream text;
    text << "it is rounded up to " << whole / static_cast<double>(period)
         << ": `async.lookahead` counts whole steps, of which a version has " << period;
    return draft.tell(kDiffers, {kKey}, text.str());
  }
  draft.tell(
      kSame, {kKey},
      "`async.lookahead` admits as many samples; `async.max_staleness` also bounds the age of "
      "each, for which verl has no bound");
}

// Fully async training: the batch of an update is require_batches mini-batches, weights go to the
// rollouts after so many updates, and the threshold is a share of samples of older weights.
void set_async(Draft& draft) {
  const std::string at = "async_training.";
  const auto mini = draft.whole("actor_rollout_ref.actor.ppo_mini_batch_size").value_or(256);
  const auto batch =
      mini * std::max<std::int64_t>(draft.whole(at + "require_batches").value_or(1), 1);
  draft.set("data.train_batch_size", batch,
            {"actor_rollout_ref.actor.ppo_mini_batch_size", at + "require_batches"});
  const auto period =
      std::max<std::int64_t>(draft.whole(at + "trigger_parameter_sync_step").value_or(4), 1);
  draft.set("async.trigger_parameter_sync_step", period, {at + "trigger_parameter_sync_step"});
  set_lookahead(draft, period);
  draft.set("async.partial_rollout",
            !draft.given(at + "partial_rollout") || draft.truth(at + "partial_rollout"),
            {at + "partial_rollout"});
  constexpr std::string_view kN = "actor_rollout_ref.rollout.n";
  if (draft.given("rollout.n") && !draft.given(kN))
    draft.set("rollout.n", *draft.value("rollout.n"), {"rollout.n"});
  else if (draft.given("rollout.n") && draft.whole("rollout.n") != draft.whole(kN))
    draft.tell(kDiffers, {"rollout.n"}, "`actor_rollout_ref.rollout.n` is taken");
  if (const auto prompts = draft.whole("rollout.total_rollout_steps")) {
    draft.drop("data.total_epochs");
    draft.set("learner.total_training_steps", std::max<std::int64_t>(*prompts / batch, 1),
              {"rollout.total_rollout_steps"}, "prompts by the batch");
  }
}

// The asynchronous modes of verl's newer trainer.
void set_newer_async(Draft& draft, bool separate) {
  constexpr std::string_view kMode = "trainer.v1.trainer_mode";
  constexpr std::string_view kAge = "trainer.v1.sampler.max_off_policy_threshold";
  constexpr std::string_view kPeriod = "trainer.v1.separate_async.parameter_sync_step";
  draft.set("async.max_staleness", draft.whole(kAge).value_or(8), {kAge, kMode});
  if (separate)
    draft.set("async.trigger_parameter_sync_step", draft.whole(kPeriod).value_or(4),
              {kPeriod, kMode});
  draft.tell(kDiffers, {kMode},
             "verl counts batches and the age of samples otherwise in this mode: look at "
             "`data.train_batch_size`, `async.max_staleness` and "
             "`async.trigger_parameter_sync_step`");
}

void derive(Draft& draft) {
  set_data(draft);
  draft.set("rollout.n", draft.whole("actor_rollout_ref.rollout.n").value_or(1),
            {"actor_rollout_ref.rollout.n"});
  set_estimator(draft);
  set_loss(draft);
  set_kl(draft);
  set_correction(draft);
  set_filter(draft);
  set_reward(draft);
  set_overlong(draft);
  set_schedule(draft);
  set_evaluation(draft);
  set_length(draft);
  if (draft.config().has_section("async_training")) return set_async(draft);
  const std::string mode = draft.text("trainer.v1.trainer_mode");
  if (mode == "colocate_async" || mode == "separate_async")
    set_newer_async(draft, mode == "separate_async");
  else
    set_synchronous(draft);
  set_batch(draft, draft.whole("data.train_batch_size").value_or(1024),
            draft.whole("actor_rollout_ref.actor.ppo_mini_batch_size").value_or(256),
            {"data.train_batch_size"}, {"actor_rollout_ref.actor.ppo_mini_batch_size"});
}

}  // namespace
}  // namespace verl

Dialect verl_dialect() {
  return {"verl",       "verl",          verl_marks(), verl_programs(),
          verl_rules(), verl_defaults(), verl::derive};
}

}  // namespace tandem::translate
