// The rows of the job table for the sections `learner`, `algorithm` and `pools.learner`, and the
// rules over the keys of rejection; job_keys.cc explains how rows work.
//
// Two kinds of limits are not in the rows. Other relations between keys, such as a mini-batch that
// must divide the batch, are in job_rules.cc. Values that a choice replaces, such as the loss
// aggregation of dr_grpo, are in settle() there: the row shows the default of the other choices.
#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "actors/job/job_table.h"
#include "actors/job/job_values.h"
#include "actors/job/key_fields.h"
#include "runtime/base/json.h"

namespace tandem::job {
namespace {

// Needs a value model, which this version does not have.
constexpr std::array<std::string_view, 1> kLaterEstimators{"gae"};

using J = JobSpec;

const Key kLearnerKeys[] = {
    {.path = "learner.ranks",
     .field = [](J& j) { return slot(j.learner.ranks); },
     .description = "Data-parallel processes of the learner.",
     .range = between(1, kActorsMax),
     .unit = "ranks"},
    {.path = "learner.total_training_steps",
     .field = [](J& j) { return slot(j.learner.total_training_steps); },
     .description = "RL steps; one batch is one step and one policy version.",
     .range = between(1, kStepsMax),
     .unit = "steps"},
    {.path = "learner.ppo_mini_batch_size",
     .field = [](J& j) { return slot(j.learner.ppo_mini_batch_size); },
     .description =
         "A batch is cut, in its order, into mini-batches of so many groups, and each is "
         "an optimizer step; divides `data.train_batch_size`. Null: the batch is one. "
         "Steps, versions, staleness and the learning rate's schedule count batches.",
     .range = between(1, kBatchMax),
     .unit = "groups"},
    {.path = "learner.ppo_epochs",
     .field = [](J& j) { return slot(j.learner.ppo_epochs); },
     .description = "How often a batch is gone through, mini-batch by mini-batch.",
     .range = between(1, 1024),
     .unit = "times"},
    {.path = "learner.save_freq",
     .field = [](J& j) { return slot(j.learner.save_freq); },
     .description =
         "How often a checkpoint is written; 0: only at the end, and as the next two keys say.",
     .range = between(0, kStepsMax),
     .unit = "steps"},
    {.path = "learner.save_every_epochs",
     .field = [](J& j) { return slot(j.learner.save_every_epochs); },
     .description = "A checkpoint also after so many epochs: each time that as many groups have "
                    "been trained as `data.train_files` has prompts; null: none for that.",
     .range = between(1, 1e6),
     .unit = "epochs"},
    {.path = "learner.save_every_minutes",
     .field = [](J& j) { return slot(j.learner.save_every_minutes); },
     .description = "A checkpoint also with the first step that ends so long after the checkpoint "
                    "before; null: none for that.",
     .range = above_to(0, 1e6),
     .unit = "minutes"},
    {.path = "learner.test_freq",
     .field = [](J& j) { return slot(j.learner.test_freq); },
     .description = "How often `data.val_files` are evaluated; 0: only before and after.",
     .range = between(0, kStepsMax),
     .unit = "steps"},
    {.path = "learner.val_before_train",
     .field = [](J& j) { return slot(j.learner.val_before_train); },
     .description = "Evaluate before the first step, and before and after a warm start; false: the "
                    "first evaluation is that of `test_freq`."},
    {.path = "learner.max_token_len",
     .field = [](J& j) { return slot(j.learner.max_token_len); },
     .description = "Tokens packed into one forward and backward pass of a rank.",
     .range = between(1, kTokensMax),
     .unit = "tokens"},
    {.path = "learner.enable_gradient_checkpointing",
     .field = [](J& j) { return slot(j.learner.enable_gradient_checkpointing); },
     .description = "Keeps the activations of one layer and computes the others again on the way "
                    "back: less memory, a forward pass more, the same numbers."},
    {.path = "learner.observe_fraction",
     .field = [](J& j) { return slot(j.learner.observe_fraction); },
     .description =
         "The share of a batch's groups without a gradient that are computed all the same, for "
         "the metrics of the policy; rounded up, drawn by the seed. It changes no weight. With a "
         "KL or entropy term in the loss every group has a gradient.",
     .range = above_to(0, 1)},
    {.path = "learner.max_nonfinite_steps",
     .field = [](J& j) { return slot(j.learner.max_nonfinite_steps); },
     .description =
         "An optimizer step whose gradient is not finite (NaN or infinite) changes no weight and "
         "is skipped, with a warning; after so many in a row the next one ends the job. 0: "
         "the first one does.",
     .range = between(0, kStepsMax),
     .unit = "steps"},
    // Only --resume uses this key: check_resumable() in resume.cc reads it.
    {.path = "learner.resume_mode",
     .field = [](J& j) { return slot(j.learner.resume_mode); },
     .description =
         "What `tandem run --resume` goes on from. `auto`: the last checkpoint. `disable`: "
         "nothing, "
         "--resume is refused. A learner that restarts while its job runs always takes the last "
         "checkpoint."},
    {.path = "learner.max_ckpt_to_keep",
     .field = [](J& j) { return slot(j.learner.max_ckpt_to_keep); },
     .description = "Older checkpoints are deleted, but for that of `keep_best`.",
     .range = between(1, 1e6),
     .unit = "checkpoints"},
    {.path = "learner.keep_best",
     .field = [](J& j) { return slot(j.learner.keep_best); },
     .description =
         "A key of evaluations, as `val/reward/mean` or `val/reward/extra/NAME/mean`: the "
         "checkpoint whose evaluation has the best value is kept, and linked to as "
         "`checkpoints/best`. Each evaluated step is saved then."},
    {.path = "learner.keep_best_mode",
     .field = [](J& j) { return slot(j.learner.keep_best_mode); },
     .description = "Which value of `keep_best` is the best: the greatest, or the least."},
    // Section `learner.optimizer`: AdamW.
    {.path = "learner.optimizer.lr",
     .field = [](J& j) { return slot(j.learner.optimizer.lr); },
     .description =
         "Learning rate of AdamW after the warm-up steps; 0 changes nothing. Under "
         "`model.init: random`: 1e-3, where it is left out. Every parameter is trained, so that "
         "pretrained weights seldom survive rates above 1e-4.",
     .range = as_float(at_least(0))},
    {.path = "learner.optimizer.lr_scheduler_type",
     .field = [](J& j) { return slot(j.learner.optimizer.lr_scheduler_type); },
     .description = "How the rate falls from `lr` to `min_lr_ratio` times `lr`."},
    {.path = "learner.optimizer.lr_warmup_steps",
     .field = [](J& j) { return slot(j.learner.optimizer.lr_warmup_steps); },
     .description = "Steps over which the rate rises linearly to `lr`.",
     .range = between(0, kStepsMax),
     .unit = "steps"},
    {.path = "learner.optimizer.lr_warmup_steps_ratio",
     .field = [](J& j) { return slot(j.learner.optimizer.lr_warmup_steps_ratio); },
     .description = "The warm-up as a share of `learner.total_training_steps`, rounded down, in "
                    "place of `lr_warmup_steps`, which is 0 then.",
     .range = between(0, 1)},
    {.path = "learner.optimizer.min_lr_ratio",
     .field = [](J& j) { return slot(j.learner.optimizer.min_lr_ratio); },
     .description = "The last step's rate as a share of `lr`.",
     .range = between(0, 1)},
    {.path = "learner.optimizer.betas",
     .field = [](J& j) { return slot(j.learner.optimizer.betas); },
     .description = "AdamW's decay rates of the first and second moment.",
     // A decay rate of 1 would never take a new gradient in.
     .range = as_float(below(0, 1))},
    {.path = "learner.optimizer.eps",
     .field = [](J& j) { return slot(j.learner.optimizer.eps); },
     .description = "AdamW's epsilon.",
     .range = as_float(above_to(0, 1))},
    {.path = "learner.optimizer.weight_decay",
     .field = [](J& j) { return slot(j.learner.optimizer.weight_decay); },
     .description = "Decoupled weight decay.",
     .range = as_float(at_least(0))},
    {.path = "learner.optimizer.grad_clip",
     .field = [](J& j) { return slot(j.learner.optimizer.grad_clip); },
     .description = "The gradient's global norm is clipped to it; 0: off.",
     .range = at_least(0)},

    // Section `algorithm`, then its subsections.
    {.path = "algorithm.adv_estimator",
     .field = [](J& j) { return slot(j.algorithm.adv_estimator); },
     .description = "How rewards become advantages. `dr_grpo` is grpo without the division by std "
                    "and with its token denominator. All but `reinforce_plus_plus` need "
                    "`rollout.n` of at least 2.",
     .later_values = kLaterEstimators},
    {.path = "algorithm.norm_adv_by_std_in_grpo",
     .field = [](J& j) { return slot(j.algorithm.norm_adv_by_std_in_grpo); },
     .description = "Divide a group's advantages by the standard deviation of its rewards, "
                    "under `grpo`."},
    {.path = "algorithm.scale_rewards",
     .field = [](J& j) { return slot(j.algorithm.scale_rewards); },
     .description =
         "By which standard deviation of rewards advantages are divided: the `group`'s, that of "
         "the whole `batch`, or by `none`, as in TRL; not under `dr_grpo` and "
         "`reinforce_plus_plus`. Null: `norm_adv_by_std_in_grpo` decides, under `grpo` alone."},
    {.path = "algorithm.advantage_batch_normalize",
     .field = [](J& j) { return slot(j.algorithm.advantage_batch_normalize); },
     .description = "Whiten the advantages over the batch's completion tokens, to mean 0 and "
                    "standard deviation 1, after `adv_estimator`. With `dr_grpo`'s advantages that "
                    "is REINFORCE++-baseline. Groups whose rewards are all the same then have a "
                    "gradient."},
    {.path = "algorithm.advantage_clip",
     .field = [](J& j) { return slot(j.algorithm.advantage_clip); },
     .description = "The greatest size of an advantage: those beyond are cut to it, last of all; "
                    "null: none are.",
     .range = as_float(above(0))},
    {.path = "algorithm.loss_mode",
     .field = [](J& j) { return slot(j.algorithm.loss_mode); },
     .description = "`vanilla`: PPO's clip per token; `gspo`: per sequence; `cispo`: clipped "
                    "weights."},
    {.path = "algorithm.loss_agg_mode",
     .field = [](J& j) { return slot(j.algorithm.loss_agg_mode); },
     .description = "How token losses become one number: over all response tokens, or sequences, "
                    "of a mini-batch, as in verl. `dr_grpo` and `gspo` have their own."},
    {.path = "algorithm.clip_ratio_low",
     .field = [](J& j) { return slot(j.algorithm.clip_ratio_low); },
     .description = "The ratio is clipped from below at 1 minus this; where it is left out, 3e-4 "
                    "under `gspo`, and 1, which is no bound, under `cispo`.",
     .range = as_float(between(0, 1))},
    {.path = "algorithm.clip_ratio_high",
     .field = [](J& j) { return slot(j.algorithm.clip_ratio_high); },
     .description = "The ratio is clipped from above at 1 plus this; where it is left out, 4e-4 "
                    "under `gspo` and 4 under `cispo`.",
     .range = as_float(at_least(0))},
    {.path = "algorithm.clip_ratio_c",
     .field = [](J& j) { return slot(j.algorithm.clip_ratio_c); },
     .description = "Dual clip: the bound for negative advantages; null: off. Of `vanilla` alone; "
                    "`gspo` and `cispo` have none.",
     .range = as_float(above(1))},
    {.path = "algorithm.bypass_mode",
     .field = [](J& j) { return slot(j.algorithm.bypass_mode); },
     .description = "true: the proximal policy is the behaviour policy. false: it is the policy "
                    "that a batch's first update starts with, whose log-probabilities are computed "
                    "once before that; with one update per batch every ratio is then 1."},
    {.path = "algorithm.rollout_is",
     .field = [](J& j) { return slot(j.algorithm.rollout_is); },
     .description = "Weigh each token or sequence by min(proximal / behaviour, threshold). Null "
                    "when `bypass_mode`."},
    {.path = "algorithm.rollout_is_threshold",
     .field = [](J& j) { return slot(j.algorithm.rollout_is_threshold); },
     .description = "The greatest weight of `rollout_is`.",
     .range = as_float(above(0))},
    {.path = "algorithm.rollout_is_batch_normalize",
     .field = [](J& j) { return slot(j.algorithm.rollout_is_batch_normalize); },
     .description = "Divide the weights of `rollout_is` by their mean over the batch's completion "
                    "tokens, or under `sequence` over its completions, after the threshold. Costs "
                    "a further forward pass where a batch is one update."},
    {.path = "algorithm.rollout_rs",
     .field = [](J& j) { return slot(j.algorithm.rollout_rs); },
     .description =
         "Rejects tokens whose ratio r of proximal to behaviour probability (with `bypass_mode`: "
         "of current to behaviour) is outside the two thresholds: they have no policy gradient, "
         "and stay in the denominators. `token`: each by its own ratio; `sequence`: a completion "
         "by the product of its tokens' ratios; `geometric`: by their geometric mean. The names "
         "with `k2` and `k3` bound a divergence from above: (log r)²/2, or r - 1 - log r, of each "
         "token, or the sum, mean or maximum of a completion's."},
    {.path = "algorithm.rollout_rs_threshold",
     .field = [](J& j) { return slot(j.algorithm.rollout_rs_threshold); },
     .description =
         "The greatest ratio that `rollout_rs` takes, at least 1: near 1, as 1.01, under "
         "`geometric`. For `k2` and `k3` the greatest divergence, as 0.01 under `seq_mean_k3`.",
     .range = as_float(above(0))},
    {.path = "algorithm.rollout_rs_threshold_lower",
     .field = [](J& j) { return slot(j.algorithm.rollout_rs_threshold_lower); },
     .description = "The least ratio that `rollout_rs` takes; null: 1 / `rollout_rs_threshold`. "
                    "Not for `k2` and `k3`.",
     .range = as_float(between(0, 1))},
    {.path = "algorithm.rollout_rs_also",
     .field = [](J& j) { return slot(j.algorithm.rollout_rs_also); },
     .description = "Further criteria beside `rollout_rs`, by their names there, each with its "
                    "threshold: a token is taken where all of them take it. The least ratio is "
                    "1 / the threshold.",
     .range = as_float(above(0))},
    {.path = "algorithm.rollout_token_veto_threshold",
     .field = [](J& j) { return slot(j.algorithm.rollout_token_veto_threshold); },
     .description = "A completion that has a token with a ratio, as that of `rollout_rs`, below "
                    "this is rejected whole, as 1e-4; null: none is.",
     .range = as_float(above(0))},
    {.path = "algorithm.entropy_coeff",
     .field = [](J& j) { return slot(j.algorithm.entropy_coeff); },
     .description = "Weight of the entropy bonus.",
     .range = as_float(at_least(0))},
    {.path = "algorithm.use_kl_loss",
     .field = [](J& j) { return slot(j.algorithm.use_kl_loss); },
     .description = "Add the KL divergence from the weights at the start of RL to the loss."},
    {.path = "algorithm.kl_loss_coef",
     .field = [](J& j) { return slot(j.algorithm.kl_loss_coef); },
     .description = "Weight of that divergence.",
     .range = as_float(at_least(0))},
    {.path = "algorithm.kl_loss_type",
     .field = [](J& j) { return slot(j.algorithm.kl_loss_type); },
     .description = "How `use_kl_loss` estimates the divergence of a token, as `kl_penalty`; its "
                    "gradient is that of the estimate. `low_var_kl` has none at its bound."},
    {.path = "algorithm.use_kl_in_reward",
     .field = [](J& j) { return slot(j.algorithm.use_kl_in_reward); },
     .description =
         "Take the KL divergence from the weights at the start of RL from the reward: under "
         "`reinforce_plus_plus` from each token's, before it is whitened; else from a group's "
         "advantages, beside its mean in the group, after `norm_adv_by_std_in_grpo`."},
    {.path = "algorithm.kl_penalty",
     .field = [](J& j) { return slot(j.algorithm.kl_penalty); },
     .description =
         "How `use_kl_in_reward` estimates the divergence of a token, with d the "
         "difference of its log-probabilities under the proximal policy and at the "
         "start: `kl`: d; `abs`: |d|; `mse`: d²/2; `low_var_kl`: exp(-d) + d - 1, at most "
         "10. `k1`, `k2` and `k3` are other names of `kl`, `mse` and `low_var_kl`."},
    {.path = "algorithm.mask_truncated_completions",
     .field = [](J& j) { return slot(j.algorithm.mask_truncated_completions); },
     .description = "Completions that `data.max_response_length` cut off leave the loss and its "
                    "denominators; their rewards still count in their group's mean."},
    {.path = "algorithm.kl_ctrl.kl_coef",
     .field = [](J& j) { return slot(j.algorithm.kl_ctrl.kl_coef); },
     .description = "Weight of the divergence that `use_kl_in_reward` takes from the reward.",
     .range = as_float(at_least(0))},
    {.path = "algorithm.filter_groups.enable",
     .field = [](J& j) { return slot(j.algorithm.filter_groups.enable); },
     .description = "Discard groups whose completions all earned the same, or whose mean is out of "
                    "bounds, and replace them; false: they are trained, the former with advantage "
                    "0."},
    {.path = "algorithm.filter_groups.metric",
     .field = [](J& j) { return slot(j.algorithm.filter_groups.metric); },
     .description = "What is looked at. `score`: the rewards; `acc`: which completions have a "
                    "reward above 0.5."},
    {.path = "algorithm.filter_groups.lower_bound",
     .field = [](J& j) { return slot(j.algorithm.filter_groups.lower_bound); },
     .description = "Groups whose mean is not above it are discarded too; null: no bound."},
    {.path = "algorithm.filter_groups.upper_bound",
     .field = [](J& j) { return slot(j.algorithm.filter_groups.upper_bound); },
     .description = "Groups whose mean is not below it are discarded too; null: no bound."},
    {.path = "algorithm.filter_groups.max_num_gen_batches",
     .field = [](J& j) { return slot(j.algorithm.filter_groups.max_num_gen_batches); },
     .description = "Past so many batches generated for one step such groups are kept, which "
                    "`tandem get jobs` and `tandem why` tell.",
     .range = between(1, 1e6),
     .unit = "batches"},
    {.path = "algorithm.overlong_buffer.len",
     .field = [](J& j) { return slot(j.algorithm.overlong_buffer.len); },
     .description = "The last tokens before `max_response_length` over which a penalty rises; 0: "
                    "off.",
     .range = between(0, kTokensMax),
     .unit = "tokens"},
    {.path = "algorithm.overlong_buffer.penalty_factor",
     .field = [](J& j) { return slot(j.algorithm.overlong_buffer.penalty_factor); },
     .description = "The penalty at full length, taken from the reward.",
     .range = as_float(at_least(0))},
};

// A ratio's upper bound is at least 1, that of a divergence any above 0.
std::optional<std::string> bad_threshold(learner::RejectionForm form, double threshold) {
  if (!learner::bounds_ratio(form) || threshold >= 1) return {};
  return "is " + nlohmann::json(threshold).dump() + ", below 1: `" + std::string(spelling(form)) +
         "` bounds a ratio, which is 1 where the policies agree";
}

void rejection_rules(const JobSpec& job, std::vector<Violation>& broken) {
  using learner::RejectionForm;
  const learner::AlgorithmConfig& a = job.algorithm;
  if (a.rollout_is_batch_normalize && !a.rollout_is)
    broken.push_back({"algorithm.rollout_is_batch_normalize",
                      "`algorithm.rollout_is_batch_normalize` is true, and `algorithm.rollout_is` "
                      "is null: there are no weights",
                      "set `algorithm.rollout_is: token`, or leave it out"});
  const std::string also = "algorithm.rollout_rs_also";
  if (!a.rollout_rs) {
    if (!a.rollout_rs_also.empty())
      broken.push_back({also, "`" + also + "` adds to `algorithm.rollout_rs`, which is null",
                        "move one of its criteria to `algorithm.rollout_rs` and "
                        "`algorithm.rollout_rs_threshold`"});
    return;
  }
  if (const auto bad = bad_threshold(*a.rollout_rs, a.rollout_rs_threshold))
    broken.push_back({"algorithm.rollout_rs_threshold", "`algorithm.rollout_rs_threshold` " + *bad,
                      "2 is usual; `algorithm.rollout_rs_threshold_lower` has the bound below 1"});
  if (!learner::bounds_ratio(*a.rollout_rs) && a.rollout_rs_threshold_lower)
    broken.push_back({"algorithm.rollout_rs_threshold_lower",
                      "`algorithm.rollout_rs: " + std::string(spelling(*a.rollout_rs)) +
                          "` bounds a divergence, which has no least value but 0",
                      "leave `algorithm.rollout_rs_threshold_lower` out"});
  std::vector<RejectionForm> seen{*a.rollout_rs};
  for (const auto& [name, threshold] : a.rollout_rs_also) {
    const std::optional<RejectionForm> form = spelt<RejectionForm>(name);
    const std::string named = "`" + also + "." + name + "` ";
    if (!form)
      broken.push_back({also, "`" + also + "` has `" + name + "`, which is no criterion",
                        "one of " + join(spellings<RejectionForm>())});
    else if (std::ranges::find(seen, *form) != seen.end())
      broken.push_back({also, named + "is a second `" + std::string(spelling(*form)) + "`",
                        "leave one of the two out"});
    else if (const auto bad = bad_threshold(*form, threshold))
      broken.push_back({also, named + *bad, "2 is usual"});
    if (form) seen.push_back(*form);
  }
}

// Section `pools.learner`.
const Key kLearnerPoolKeys[] = {
    {.path = "pools.learner.cpus_per_actor",
     .field = [](J& j) { return slot(j.pools.learner.cpus_per_actor); },
     .description = "CPUs reserved for each rank of the learner.",
     .range = between(0, kThreadsMax),
     .unit = "CPUs"},
    {.path = "pools.learner.threads_per_actor",
     .field = [](J& j) { return slot(j.pools.learner.threads_per_actor); },
     .description = "Threads that each rank uses.",
     .range = between(1, kThreadsMax),
     .unit = "threads"},
    {.path = "pools.learner.gpus_per_actor",
     .field = [](J& j) { return slot(j.pools.learner.gpus_per_actor); },
     .description =
         "GPUs reserved for each rank of the learner: a share of one (0.5), or 1. With 0 "
         "it runs on the CPU. Several ranks on GPUs need NCCL.",
     .range = between(0, kGpusMax),
     .unit = "GPUs",
     .later_above = 1},
    {.path = "pools.learner.strategy",
     .field = [](J& j) { return slot(j.pools.learner.strategy); },
     .description = "As `pools.rollout.strategy`, for the ranks of the learner."},
    {.path = "pools.learner.preemptible",
     .field = [](J& j) { return slot(j.pools.learner.preemptible); },
     .description = "Always false: the end of a learner costs the steps since its checkpoint."},
};

}  // namespace

RoleKeys learner_keys() {
  return {.own = kLearnerKeys, .pool = kLearnerPoolKeys, .rules = rejection_rules};
}

}  // namespace tandem::job
