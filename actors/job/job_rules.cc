// Rules over several keys, a function per subject. Each function adds its violations to a list. A
// rule that reads a value which another rule of its function has refused is not asked, since
// mending the one may mend the other. A violation names the key that the user should change, the
// values that contradict each other, and the way out; load_job.cc adds the place of the key.
//
// settle() comes first (JobReader::finish): it changes values that one choice decides, so that the
// rules judge the job that would run. Warnings are for settings that do nothing or seldom what is
// meant; they never change the job.
//
// Rules that need the model or the data, such as max_position_embeddings, are not here but in
// actors/main/job_inputs.cc.
#include "actors/job/job_rules.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <tuple>

#include "actors/job/key_fields.h"
#include "actors/job/print_job.h"
#include "actors/job/prompt_order.h"
#include "runtime/base/text.h"
#include "scheduler/fleet/cost.h"
#include "scheduler/fleet/staleness.h"

namespace tandem::job {
namespace {

constexpr std::size_t kNameCharsMax = 63;
constexpr std::int64_t kLabelBytesMax = 128;  // wandb's limit of names
constexpr std::int64_t kTagsMax = 64;
constexpr std::int64_t kPositionsPerChunk = 16;  // a chunk of attention's sums (AT-1)

using Violations = std::vector<Violation>;

std::string text(std::int64_t value) { return std::to_string(value); }

void name_rule(const JobSpec& job, Violations& broken) {
  // std::isalnum() depends on the locale above 127; a job's name is part of paths and must be
  // ASCII.
  const auto word = [](unsigned char c) { return c < 128 && std::isalnum(c); };
  const bool valid = !job.name.empty() && job.name.size() <= kNameCharsMax && word(job.name[0]) &&
                     std::ranges::all_of(job.name, [&](unsigned char c) {
                       return word(c) || c == '.' || c == '_' || c == '-';
                     });
  if (valid) return;
  broken.push_back({"name", "`" + job.name + "` cannot name a job",
                    "letters, digits, `.`, `_` and `-`, starting with a letter or digit, at most " +
                        std::to_string(kNameCharsMax) + " characters"});
}

// Shares are whole parts of kMixtureParts; a smaller one than this would be rounded by much.
constexpr double kMixtureShareMin = 1e-4;

void mixture_rules(const DataSpec& data, Violations& broken) {
  if (data.mixture.empty()) return;
  const auto refuse = [&](std::string message, std::string help) {
    broken.push_back({"data.mixture", std::move(message), std::move(help)});
  };
  if (data.mixture.size() > kMixtureSourcesMax)
    return refuse("`data.mixture` has " + std::to_string(data.mixture.size()) + " weights",
                  "at most " + std::to_string(kMixtureSourcesMax));
  double sum = 0;
  for (const auto& [source, weight] : data.mixture) sum += weight;
  if (sum <= 0)
    return refuse("the weights of `data.mixture` are all 0", "give a data set a weight above 0");
  for (const auto& [source, weight] : data.mixture)
    if (weight > 0 && weight < kMixtureShareMin * sum)
      return refuse("`data.mixture` gives `" + source + "` less than a ten-thousandth of all",
                    "raise its weight, or set it to 0");
}

void data_rules(const JobSpec& job, Violations& broken) {
  mixture_rules(job.data, broken);
  if (job.data.system_prompt && job.data.system_prompt_file)
    broken.push_back({"data.system_prompt_file",
                      "`data.system_prompt` and `data.system_prompt_file` are both given",
                      "set one of them to null"});
  if (job.data.extra_keys && std::ranges::count(*job.data.extra_keys, "") > 0)
    broken.push_back(
        {"data.extra_keys", "`data.extra_keys` holds an empty name", "name fields of the lines"});
  if (job.data.train_files.empty())
    broken.push_back({"data.train_files", "`data.train_files` is empty", "name at least one file"});
  if (job.warm_start && job.warm_start->train_files.empty())
    broken.push_back({"warm_start.train_files", "`warm_start.train_files` is empty",
                      "name at least one file, or leave the section out"});
  for (const auto& [key, value] : {std::pair("data.prompt_key", &job.data.prompt_key),
                                   std::pair("data.answer_key", &job.data.answer_key),
                                   std::pair("data.completion_key", &job.data.completion_key),
                                   std::pair("data.data_source_key", &job.data.data_source_key)})
    if (value->empty())
      broken.push_back({key, "`" + std::string(key) + "` is empty", "name a field of the lines"});
}

// A label is shown in lists of runs, and sent to trackers: a line that no filter splits.
bool is_label(const std::string& text) {
  return !text.empty() && text.size() <= kLabelBytesMax && valid_utf8(text) == text &&
         visible(text, Lines::kOne) == text && text.find(',') == std::string::npos;
}

void tracking_rules(const JobSpec& job, Violations& broken) {
  for (const std::string& tracker : job.trackers)
    if (!spelt<TrackerName>(tracker))
      broken.push_back({"trackers", "`" + tracker + "` is no tracker of this version",
                        "choose from " + join(spellings<TrackerName>()) +
                            "; others can read metrics.jsonl, or `tandem metrics`"});
  const auto check = [&broken](const char* key, const std::optional<std::string>& label) {
    if (label && !is_label(*label))
      broken.push_back({key, "`" + visible(*label, Lines::kOne) + "` cannot be `" + key + "`",
                        "one line without commas, at most " + text(kLabelBytesMax) + " bytes"});
  };
  check("tracking.project", job.tracking.project);
  check("tracking.entity", job.tracking.entity);
  check("tracking.run_name", job.tracking.run_name);
  check("tracking.group", job.tracking.group);
  for (const std::string& tag : job.tracking.tags) check("tracking.tags", tag);
  if (job.tracking.tags.size() > kTagsMax)
    broken.push_back({"tracking.tags", "`tracking.tags` has more than " + text(kTagsMax) + " tags",
                      "leave some out"});
}

// All estimators except reinforce_plus_plus compare the completions of one group, and the filter of
// groups looks at the variance within a group: one completion is not enough for either.
void sampling_rules(const JobSpec& job, Violations& broken) {
  const RolloutSpec& r = job.rollout;
  if (r.n < 2 && job.algorithm.adv_estimator != AdvEstimator::kReinforcePlusPlus)
    broken.push_back(
        {"rollout.n",
         "`algorithm.adv_estimator: " + std::string(spelling(job.algorithm.adv_estimator)) +
             "` compares the completions of a group, and `rollout.n` is " + text(r.n),
         "set `rollout.n` to 2 or more, or use reinforce_plus_plus"});
  else if (r.n < 2 && job.algorithm.filter_groups.enable)
    broken.push_back({"algorithm.filter_groups.enable",
                      "with `rollout.n: 1` every group has zero variance and would be discarded",
                      "set `rollout.n` to 2 or more"});
  if (r.sampling.min_tokens > job.data.max_response_length)
    broken.push_back({"rollout.min_tokens",
                      "`rollout.min_tokens` is " + text(r.sampling.min_tokens) +
                          ", more than `data.max_response_length`, " +
                          text(job.data.max_response_length),
                      "lower the one or raise the other"});
  if (std::ranges::any_of(r.sampling.stop, &std::string::empty))
    broken.push_back({"rollout.stop", "`rollout.stop` holds an empty string",
                      "it would end every completion at once; leave it out"});
}

// Bounds below which an engine could not take one whole group, or one token for each sequence.
void engine_rules(const JobSpec& job, Violations& broken) {
  const RolloutSpec& r = job.rollout;
  if (r.args.block_size % kPositionsPerChunk != 0)
    broken.push_back(
        {"rollout.block_size",
         "`rollout.block_size` is " + text(r.args.block_size) + ", not a multiple of 16",
         "attention reduces keys in chunks of 16 positions; use 16, 32, 48 …"});
  if (r.args.max_num_seqs < r.n)
    broken.push_back({"rollout.max_num_seqs",
                      "`rollout.max_num_seqs` is " + text(r.args.max_num_seqs) +
                          ", less than one group, `rollout.n: " + text(r.n) + "`",
                      "raise it to at least " + text(r.n)});
  else if (r.args.max_num_batched_tokens < r.args.max_num_seqs)
    broken.push_back({"rollout.max_num_batched_tokens",
                      "`rollout.max_num_batched_tokens` is " + text(r.args.max_num_batched_tokens) +
                          ", but " + text(r.args.max_num_seqs) +
                          " sequences (`rollout.max_num_seqs`) decode a token each",
                      "raise it to at least " + text(r.args.max_num_seqs)});
  const auto& concurrent = job.async.max_concurrent_rollouts;
  if (concurrent && *concurrent < r.n)
    broken.push_back({"async.max_concurrent_rollouts",
                      "`async.max_concurrent_rollouts` is " + text(*concurrent) +
                          ", less than one group, `rollout.n: " + text(r.n) + "`",
                      "raise it to at least " + text(r.n)});
}

// All completions of one evaluated prompt must fit into the engine at once, the greedy one among
// them.
void eval_rules(const JobSpec& job, Violations& broken) {
  const EvalSpec& e = job.eval;
  if (e.n > 1 && e.temperature == 0)
    broken.push_back(
        {"eval.n",
         "`eval.n` is " + text(e.n) +
             ", and with `eval.temperature: 0` all completions of a prompt are the same",
         "set `eval.temperature` above 0 (1.0 as in training), or `eval.n: 1`"});
  else if (double t = e.temperature; t > 0 && t < rollout::kTemperatureMin)
    broken.push_back({"eval.temperature",
                      "`eval.temperature` is " + print_value(&t) +
                          ", and logits divided by it overflow: 0 or at least 1e-6 is allowed",
                      "set it to 0, by which each token is the likeliest one"});
  else if (e.greedy && e.temperature == 0)
    broken.push_back({"eval.greedy",
                      "`eval.greedy` adds a greedy completion to sampled ones, and with "
                      "`eval.temperature: 0` the only completion is greedy",
                      "set `eval.temperature` above 0, or leave `eval.greedy` out"});
  else if (const std::int64_t completions = e.n + (e.greedy ? 1 : 0);
           job.rollout.args.max_num_seqs < completions)
    broken.push_back({"rollout.max_num_seqs",
                      "`rollout.max_num_seqs` is " + text(job.rollout.args.max_num_seqs) +
                          ", less than the completions of one evaluated prompt, " +
                          text(completions) + " (`eval.n`" + (e.greedy ? " and a greedy one" : "") +
                          ")",
                      "raise it to at least " + text(completions) + ", or lower `eval.n`"});
}

// Whether the evaluations of the job have this figure, the part of a key behind `reward/`. Which
// numbers a reward sends in `extra` is known once it has scored.
bool has_figure(const EvalSpec& eval, std::string_view figure) {
  if (figure == "mean") return true;
  if (constexpr std::string_view kExtra = "extra/", kMean = "/mean";
      figure.starts_with(kExtra) && figure.ends_with(kMean))
    return figure.size() > kExtra.size() + kMean.size();
  if (figure == "greedy") return eval.greedy;
  // pass@k and maj@k are there for the powers of two up to eval.n, and for eval.n.
  for (std::int64_t k = 1; eval.n > 1 && k <= eval.n;
       k = k < eval.n ? std::min(2 * k, eval.n) : k + 1)
    if (figure == "pass@" + text(k) || (k > 1 && figure == "maj@" + text(k))) return true;
  return false;
}

void keep_best_rules(const JobSpec& job, Violations& broken) {
  if (!job.learner.keep_best) return;
  const std::string& key = *job.learner.keep_best;
  if (job.data.val_files.empty())
    return broken.push_back({"learner.keep_best",
                             "`learner.keep_best` is `" + key + "`, and the job has no evaluations",
                             "add `data.val_files`, or leave it out"});
  const std::string_view kPart = "reward/";
  const auto at = key.rfind(kPart);
  const std::string_view before = std::string_view(key).substr(0, std::min(at, key.size()));
  const bool is_key = at != key.npos && before.starts_with("val/") &&
                      std::ranges::count(before, '/') == (before.size() > 4 ? 2 : 1);
  if (is_key && has_figure(job.eval, std::string_view(key).substr(at + kPart.size()))) return;
  broken.push_back({"learner.keep_best", "the evaluations of the job have no `" + key + "`",
                    "name a key as `val/reward/mean`, `val/SOURCE/reward/mean`, "
                    "`val/reward/extra/NAME/mean` or, "
                    "with `eval.n: 8`, `val/reward/pass@8`"});
}

// Bounds between which no mean lies would discard every group.
void filter_rules(const JobSpec& job, Violations& broken) {
  const learner::FilterGroups& filter = job.algorithm.filter_groups;
  const auto& [lower, upper] = std::tie(filter.lower_bound, filter.upper_bound);
  const bool by_share = filter.metric == learner::FilterMetric::kAcc;
  const double least = lower.value_or(by_share ? 0.0 : -HUGE_VAL);
  const double most = upper.value_or(by_share ? 1.0 : HUGE_VAL);
  if (least >= most || (by_share && (least >= 1 || most <= 0)))
    broken.push_back(
        {lower ? "algorithm.filter_groups.lower_bound" : "algorithm.filter_groups.upper_bound",
         "no group's mean lies between `algorithm.filter_groups.lower_bound` and "
         "`upper_bound`",
         by_share ? "shares are from 0 to 1, as in 0.1 and 0.9"
                  : "set the upper one above the lower one"});
}

// How advantages are scaled, by keys that not every estimator has.
void advantage_rules(const JobSpec& job, Violations& broken) {
  const learner::AlgorithmConfig& a = job.algorithm;
  const std::string estimator =
      "`algorithm.adv_estimator: " + std::string(spelling(a.adv_estimator)) + "` ";
  const bool whitens = a.adv_estimator == AdvEstimator::kReinforcePlusPlus;
  if (a.scale_rewards && *a.scale_rewards != learner::ScaleRewards::kNone &&
      (whitens || a.adv_estimator == AdvEstimator::kDrGrpo))
    broken.push_back({"algorithm.scale_rewards",
                      estimator + (whitens ? "whitens over the batch" : "divides by no deviation") +
                          ", and `algorithm.scale_rewards` is " +
                          std::string(spelling(*a.scale_rewards)),
                      "leave it out, or use another estimator"});
  if (a.advantage_batch_normalize && whitens)
    broken.push_back({"algorithm.advantage_batch_normalize",
                      estimator + "whitens over the batch by itself",
                      "leave `algorithm.advantage_batch_normalize` out"});
}

void pricing_rules(const JobSpec& job, Violations& broken) {
  if (job.pricing && !scheduler::is_currency(job.pricing->currency))
    broken.push_back({"pricing.currency",
                      "`" + visible(job.pricing->currency, Lines::kOne) + "` is no currency",
                      "a word of at most " + std::to_string(scheduler::kCurrencyBytesMax) +
                          " letters, as in USD or credits"});
}

// The names of roles are checked where they are read (load_job.cc).
void actor_rules(const JobSpec& job, Violations& broken) {
  if (job.actors.size() > kActorRolesMax)
    return broken.push_back({"actors",
                             "`actors` has " + std::to_string(job.actors.size()) + " roles",
                             "at most " + std::to_string(kActorRolesMax)});
  for (const auto& [name, actor] : job.actors) {
    const std::string section = "actors." + name;
    if (!actor.command || actor.command->empty() || actor.command->front().empty())
      broken.push_back({section + ".command", "`" + section + ".command` is empty",
                        "add the argv, as in [./counter]"});
    check_variables(actor.env, section + ".env", broken);
    const bool sandboxed = actor.sandbox != SandboxMode::kOff;
    if (sandboxed && actor.gpus_per_actor > 0)
      broken.push_back({section + ".sandbox", "a sandboxed actor sees no GPU",
                        "set `" + section + ".gpus_per_actor: 0`, or leave the sandbox off"});
    if (!sandboxed && !actor.readable.empty())
      broken.push_back({section + ".readable", "without a sandbox the actor may read everything",
                        "set `" + section + ".sandbox: auto`, or leave it out"});
  }
}

// Every mini-batch has the same number of groups, and every rank at least one of them.
void batch_rules(const JobSpec& job, Violations& broken) {
  const std::int64_t batch = job.data.train_batch_size;
  // Null means that the batch is one mini-batch.
  const std::int64_t mini = job.learner.ppo_mini_batch_size.value_or(batch);
  if (batch % mini != 0)
    broken.push_back({"learner.ppo_mini_batch_size",
                      "`learner.ppo_mini_batch_size` is " + text(mini) +
                          ", which does not divide `data.train_batch_size: " + text(batch) + "`",
                      "every mini-batch has as many groups; choose a divisor of " + text(batch)});
  else if (job.learner.ranks > mini)
    broken.push_back({"learner.ranks",
                      "`learner.ranks` is " + text(job.learner.ranks) +
                          ", more than the groups of " +
                          (mini < batch ? "an update, `learner.ppo_mini_batch_size: "
                                        : "a step, `data.train_batch_size: ") +
                          text(mini) + "`",
                      "a rank without a group would have nothing to train"});
}

// A sequence is never split between forward passes, so that the longest must fit into one.
void learner_rules(const JobSpec& job, Violations& broken) {
  const std::int64_t longest = job.data.max_prompt_length + job.data.max_response_length;
  if (job.learner.max_token_len < longest)
    broken.push_back({"learner.max_token_len",
                      "`learner.max_token_len` is " + text(job.learner.max_token_len) +
                          ", but one sequence may have " + text(longest) +
                          " tokens (`data.max_prompt_length` + `data.max_response_length`)",
                      "raise it to at least " + text(longest)});
  batch_rules(job, broken);
  if (!job.model.batch_invariant && job.async.schedule == Schedule::kFixedLag)
    broken.push_back({"model.batch_invariant",
                      "`async.schedule: fixed_lag` repeats a run to the bit, and with "
                      "`model.batch_invariant: false` numbers depend on what is computed together",
                      "set `model.batch_invariant: true`, or another `async.schedule`"});
  if (job.algorithm.bypass_mode && job.algorithm.rollout_is)
    broken.push_back({"algorithm.rollout_is",
                      "`algorithm.rollout_is: " + std::string(spelling(*job.algorithm.rollout_is)) +
                          "` needs proximal log-probabilities, and `algorithm.bypass_mode` is true",
                      "set `algorithm.bypass_mode: false`, or `rollout_is: null`"});
  if (job.algorithm.overlong_buffer.len > job.data.max_response_length)
    broken.push_back({"algorithm.overlong_buffer.len",
                      "`algorithm.overlong_buffer.len` is " +
                          text(job.algorithm.overlong_buffer.len) +
                          ", longer than a completion, `data.max_response_length: " +
                          text(job.data.max_response_length) + "`",
                      "a part of the completion's length is usual"});
}

std::string broadcast_type(const JobSpec& job) {
  return "`weight_broadcast.type: " + std::string(spelling(job.weight_broadcast.type)) + "`";
}

void pool_rules(const JobSpec& job, Violations& broken) {
  if (job.pools.learner.preemptible)
    broken.push_back({"pools.learner.preemptible",
                      "a learner cannot be preemptible: each end would cost the steps since its "
                      "last checkpoint",
                      "leave it out; `pools.rollout.preemptible: true` is for the rollouts"});
}

// A broadcast by NCCL goes from GPU memory to GPU memory: each side needs a GPU.
void nccl_rules(const JobSpec& job, Violations& broken) {
  if (!weights::traits_of(job.weight_broadcast.type).nccl) return;
  for (const auto& [key, gpus] :
       {std::pair("pools.learner.gpus_per_actor", job.pools.learner.gpus_per_actor),
        std::pair("pools.rollout.gpus_per_actor", job.pools.rollout.gpus_per_actor)})
    if (gpus <= 0)
      broken.push_back({key,
                        broadcast_type(job) + " sends weights from GPU to GPU, and `" +
                            std::string(key) + "` is 0",
                        "set `" + std::string(key) + ": 1`, or `weight_broadcast.type: auto`"});
}

// Memory of one GPU is shared: the learner and all rollouts must be placed on the same one.
void one_gpu_rules(const JobSpec& job, Violations& broken) {
  if (!weights::traits_of(job.weight_broadcast.type).one_gpu) return;
  for (const auto& [key, strategy] :
       {std::pair("pools.rollout.strategy", job.pools.rollout.strategy),
        std::pair("pools.learner.strategy", job.pools.learner.strategy)})
    if (strategy == PoolStrategy::kSpread)
      broken.push_back({key,
                        "`" + std::string(key) +
                            ": spread` takes the GPU with the most left, and " +
                            broadcast_type(job) + " needs the learner and all rollouts on one GPU",
                        "set it to pack, or `weight_broadcast.type: auto`"});
  const double rollout = job.pools.rollout.gpus_per_actor;
  const double all =
      job.pools.learner.gpus_per_actor + rollout * static_cast<double>(job.rollout.replicas);
  if (rollout > 0 && job.pools.learner.gpus_per_actor > 0 && all <= 1) return;
  broken.push_back(
      {"weight_broadcast.type",
       broadcast_type(job) +
           " needs the learner and all rollouts on one GPU, of which each has a share",
       "set `pools.learner.gpus_per_actor` and `pools.rollout.gpus_per_actor` above 0, "
       "together at most 1; or `weight_broadcast.type: auto`"});
}

// The relations L <= K and m <= L + 1 of the staleness budget (scheduler/fleet/staleness.h). Under
// fixed_lag a step is generated by version d - K, so that every version must be published.
void staleness_rules(const JobSpec& job, Violations& broken) {
  const AsyncSpec& a = job.async;
  const std::int64_t ahead = lookahead(a);
  if (ahead > a.max_staleness)
    broken.push_back({"async.lookahead",
                      "`async.lookahead` is " + text(ahead) +
                          ", more than `async.max_staleness`, " + text(a.max_staleness),
                      "what runs further ahead than the bound could never be trained"});
  else if (a.trigger_parameter_sync_step > ahead + 1)
    return broken.push_back(
        {"async.trigger_parameter_sync_step",
         "`async.trigger_parameter_sync_step` is " + text(a.trigger_parameter_sync_step) +
             ", more than lookahead + 1, " + text(ahead + 1),
         "the learner would wait for groups that no published version may generate"});
  if (a.schedule == Schedule::kFixedLag && a.trigger_parameter_sync_step != 1)
    broken.push_back({"async.trigger_parameter_sync_step",
                      "`async.schedule: fixed_lag` publishes every step, and "
                      "`async.trigger_parameter_sync_step` is " +
                          text(a.trigger_parameter_sync_step),
                      "set it to 1, or use `schedule: budget`"});
}

// The clip range of the GSPO paper, arXiv:2507.18071 section 5.1: the ratio of a sequence moves far
// less than that of a token. Above kGspoClipAdvised next to nothing is clipped.
constexpr double kGspoClipLow = 3e-4, kGspoClipHigh = 4e-4;
constexpr double kGspoClipAdvised = 0.05;

// CISPO bounds weights and drops no token: its paper (arXiv:2506.13585) has no lower bound, and
// ScaleRL (arXiv:2510.13786), as TRL, an upper one of 5.
constexpr double kCispoClipLow = 1, kCispoClipHigh = 4;

// Rates of a full fine-tuning by reinforcement learning are about 1e-6 in verl, TRL and OpenRLHF.
// Weights that are random have nothing to lose.
constexpr double kLrOfRandomWeights = 1e-3;
constexpr double kPretrainedLrAdvised = 1e-4;

void settle_length(JobSpec& job, const Given& given, std::vector<std::string>& changes) {
  constexpr const char *kSteps = "learner.total_training_steps", *kEpochs = "data.total_epochs";
  if (!job.data.total_epochs || given(kSteps) == 0) return;
  const bool epochs_count = given(kEpochs) > given(kSteps);
  if (epochs_count)
    job.learner.total_training_steps = LearnerSpec{}.total_training_steps;
  else
    job.data.total_epochs.reset();
  changes.push_back(std::string(epochs_count ? kSteps : kEpochs) +
                    " is not used: " + (epochs_count ? kEpochs : kSteps) + " decides");
}

// Only changes of values that the user gave are reported; a default that is replaced is no news.
void settle_loss(learner::AlgorithmConfig& a, const Given& given,
                 std::vector<std::string>& changes) {
  const bool gspo = a.loss_mode == LossMode::kGspo, cispo = a.loss_mode == LossMode::kCispo;
  const bool dr_grpo = a.adv_estimator == AdvEstimator::kDrGrpo;
  if (dr_grpo || gspo) {
    const LossAggMode own =
        dr_grpo ? LossAggMode::kSeqMeanTokenSumNorm : LossAggMode::kSeqMeanTokenMean;
    if (a.loss_agg_mode != own && given("algorithm.loss_agg_mode"))
      changes.push_back(std::string("algorithm.loss_agg_mode is ") +
                        (dr_grpo ? "seq-mean-token-sum-norm: it is part of adv_estimator dr_grpo"
                                 : "seq-mean-token-mean: it is part of loss_mode gspo"));
    a.loss_agg_mode = own;
  }
  if (!gspo && !cispo) return;
  if (a.clip_ratio_c && given("algorithm.clip_ratio_c"))
    changes.push_back(std::string("algorithm.clip_ratio_c is off: loss_mode ") +
                      (gspo ? "gspo" : "cispo") + " has no dual clip");
  a.clip_ratio_c.reset();
  if (!given("algorithm.clip_ratio_low")) a.clip_ratio_low = gspo ? kGspoClipLow : kCispoClipLow;
  if (!given("algorithm.clip_ratio_high"))
    a.clip_ratio_high = gspo ? kGspoClipHigh : kCispoClipHigh;
}

// scale_rewards is TRL's key and norm_adv_by_std_in_grpo verl's: the former, if given, decides.
void settle_scale(learner::AlgorithmConfig& a, const Given& given,
                  std::vector<std::string>& changes) {
  if (!a.scale_rewards || a.adv_estimator != AdvEstimator::kGrpo) return;
  const bool divides = *a.scale_rewards != learner::ScaleRewards::kNone;
  if (a.norm_adv_by_std_in_grpo != divides && given("algorithm.norm_adv_by_std_in_grpo"))
    changes.push_back(std::string("algorithm.norm_adv_by_std_in_grpo is ") +
                      (divides ? "true" : "false") + ": scale_rewards decides");
  a.norm_adv_by_std_in_grpo = divides;
}

}  // namespace

std::vector<Violation> broken_rules(const JobSpec& job) {
  Violations broken;
  for (const auto rule : {name_rule, actor_rules}) rule(job, broken);
  if (!trains(job)) return broken;
  for (const auto rule : {data_rules, sampling_rules, engine_rules, eval_rules, keep_best_rules,
                          tracking_rules, pricing_rules})
    rule(job, broken);
  for (const RoleKeys& role : role_keys())
    if (role.rules) role.rules(job, broken);
  for (const auto rule : {filter_rules, advantage_rules, learner_rules, staleness_rules,
                          one_gpu_rules, nccl_rules, pool_rules})
    rule(job, broken);
  return broken;
}

std::vector<std::string> settle(JobSpec& job, const Given& given) {
  std::vector<std::string> changes;
  if (job.async.schedule == Schedule::kFixedLag && job.async.partial_rollout) {
    job.async.partial_rollout = false;
    changes.push_back(
        "async.partial_rollout is off: under fixed_lag one version generates a whole group");
  }
  if (job.model.init == ModelInit::kRandom && !given("learner.optimizer.lr"))
    job.learner.optimizer.lr = kLrOfRandomWeights;
  settle_length(job, given, changes);
  settle_loss(job.algorithm, given, changes);
  settle_scale(job.algorithm, given, changes);
  learner::OptimizerConfig& optimizer = job.learner.optimizer;
  if (optimizer.lr_warmup_steps_ratio && optimizer.lr_warmup_steps != 0) {
    if (given("learner.optimizer.lr_warmup_steps"))
      changes.push_back(
          "learner.optimizer.lr_warmup_steps is not used: lr_warmup_steps_ratio decides");
    optimizer.lr_warmup_steps = 0;
  }
  // Both keys say in the end whether there are event files.
  if (!job.tensorboard) std::erase(job.trackers, spelling(TrackerName::kTensorboard));
  job.tensorboard = has_tracker(job, TrackerName::kTensorboard);
  return changes;
}

std::vector<std::string> job_warnings(const JobSpec& job) {
  std::vector<std::string> warnings;
  if (job.async.max_staleness > scheduler::kMaxStalenessAdvised)
    warnings.push_back("async.max_staleness is " + text(job.async.max_staleness) + ": above " +
                       text(scheduler::kMaxStalenessAdvised) + " learning usually suffers");
  if (double lr = job.learner.optimizer.lr;
      job.model.init == ModelInit::kPretrained && lr > kPretrainedLrAdvised)
    warnings.push_back("learner.optimizer.lr is " + print_value(&lr) +
                       " and model.init is pretrained: rates above 1e-4 for all parameters usually "
                       "destroy a pretrained model within some steps; 1e-6 to 1e-5 is usual");
  if (job.data.filter_overlong_prompts && job.data.truncation != Truncation::kDiscard)
    warnings.push_back(
        "data.truncation has no effect while data.filter_overlong_prompts leaves long prompts out");
  const RolloutSpec& r = job.rollout;
  if (r.sampling.top_k > 0 || r.sampling.top_p < 1 || r.sampling.min_p > 0)
    warnings.push_back(
        "top_k, top_p and min_p truncate what is sampled, but the loss's ratios are of the whole "
        "distribution: the policy gradient is biased");
  if (r.name != EngineName::kNative && job.algorithm.bypass_mode && !job.algorithm.rollout_is)
    warnings.push_back("rollout.name is " + std::string(spelling(r.name)) +
                       ": its log-probabilities are of other arithmetic than the learner's, as "
                       "logprob_diff in each step says; algorithm.rollout_is: token corrects for "
                       "it");
  if (r.sampling.min_tokens > 0)
    warnings.push_back(
        "rollout.min_tokens bans the end of a completion before so many tokens, but the loss's "
        "ratios are of the whole distribution: the policy gradient is biased");
  if (job.eval.temperature == 0 && (job.eval.top_k > 0 || job.eval.top_p < 1))
    warnings.push_back("eval.top_p and eval.top_k have no effect while eval.temperature is 0");
  if (!job.algorithm.use_kl_loss && job.algorithm.kl_loss_coef > 0)
    warnings.push_back("algorithm.kl_loss_coef has no effect while use_kl_loss is false");
  if (job.algorithm.use_kl_loss && job.algorithm.kl_loss_coef == 0)
    warnings.push_back(
        "algorithm.use_kl_loss only reports the divergence while kl_loss_coef is 0; 0.001 is "
        "usual");
  if (!job.algorithm.bypass_mode && !job.algorithm.rollout_is && updates_per_batch(job) == 1)
    warnings.push_back(
        "algorithm.bypass_mode is false and a batch is one update: every ratio is 1 and the clip "
        "does nothing; set learner.ppo_epochs or learner.ppo_mini_batch_size, or rollout_is");
  const learner::FilterGroups& filter = job.algorithm.filter_groups;
  if (!filter.enable && (filter.lower_bound || filter.upper_bound))
    warnings.push_back(
        "algorithm.filter_groups.lower_bound and upper_bound have no effect while "
        "filter_groups.enable is false");
  if (job.learner.keep_best_mode != KeepBestMode::kMax && !job.learner.keep_best)
    warnings.push_back("learner.keep_best_mode has no effect without learner.keep_best");
  if (job.algorithm.overlong_buffer.len == 0 && job.algorithm.overlong_buffer.penalty_factor > 0)
    warnings.push_back(
        "algorithm.overlong_buffer.penalty_factor has no effect while overlong_buffer.len is 0");
  if (job.algorithm.loss_mode == LossMode::kGspo &&
      std::max(job.algorithm.clip_ratio_low, job.algorithm.clip_ratio_high) > kGspoClipAdvised)
    warnings.push_back(
        "under loss_mode gspo the clip range is of a whole sequence's ratio: its paper has 3e-4 "
        "and 4e-4, and ranges above 0.05 clip next to nothing");
  if (job.algorithm.bypass_mode && job.algorithm.clip_ratio_c &&
      *job.algorithm.clip_ratio_c <= 1 + job.algorithm.clip_ratio_high)
    warnings.push_back("algorithm.clip_ratio_c lies below the upper clip, 1 + clip_ratio_high");
  return warnings;
}

}  // namespace tandem::job
