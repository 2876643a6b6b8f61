// A job as the program uses it: the job file (docs/job-file.md) after parsing, with every default
// filled in, every range and every rule over several keys checked, and every path absolute.
//
// The struct of a section has the section's name, and a field has its key's name, so that a key
// such as `learner.optimizer.lr` is found as job.learner.optimizer.lr. A member's initialiser is
// the key's default; a key without one is required. An optional field stands for a key that may be
// null, and an optional struct for a section that may be left out. Sections that configure one part
// of the system alone are declared there (actors/learner/learner_config.h). Not here: parsing
// (load_job.h), documentation and ranges (job_table.h), printing (print_job.h), role_config.h.
//
// JS-1  A JobSpec that load_job or parse_job returned satisfies every rule of job_rules.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/job/actor_spec.h"
#include "actors/job/job_values.h"
#include "actors/job/reward_spec.h"
#include "actors/job/rollout_spec.h"
#include "actors/learner/learner_config.h"
#include "scheduler/fleet/cost.h"

namespace tandem::job {

// The policy: where its files are and in which numbers it computes.
struct ModelSpec {
  std::filesystem::path path;  // a Hugging Face model directory
  ModelInit init = ModelInit::kPretrained;
  ModelDtype dtype = ModelDtype::kFloat32;
  // On a GPU a row of a product has the same bits whatever is computed beside it; false: the
  // fastest products that the library has. A CPU always computes as with true.
  bool batch_invariant = true;
};

// The prompts, and the names of the fields in a line of a data file (dataset.h reads them).
struct DataSpec {
  std::vector<std::filesystem::path> train_files;
  std::vector<std::filesystem::path> val_files;  // empty: no evaluation
  std::string prompt_key = "prompt";
  std::string answer_key = "answer";
  std::string completion_key = "completion";
  std::string data_source_key = "data_source";
  std::optional<std::vector<std::string>> extra_keys;  // kept beside these; null: all fields
  PromptIs prompt_is = PromptIs::kText;
  // Comes first in each conversation that has no system message. The text of the file is put into
  // `system_prompt` when the job is loaded, and `system_prompt_file` is null then.
  std::optional<std::string> system_prompt;
  std::optional<std::filesystem::path> system_prompt_file;
  // How a line whose prompt is a list of messages becomes text; these four have no effect on a
  // line whose prompt is a text.
  NameOrPath chat_template = {"auto"};  // as model::ChatFormat::read() takes it
  JsonObject chat_template_kwargs;      // further variables of the template
  bool enable_thinking = true;
  std::string chat_date = "26 Jul 2024";
  std::int64_t max_prompt_length = 64;    // tokens
  std::int64_t max_response_length = 64;  // tokens
  std::int64_t train_batch_size = 64;     // groups per step (B)
  bool shuffle = true;
  // Decides learner.total_training_steps once the data are read (job_inputs.h), and is null then.
  std::optional<std::int64_t> total_epochs;
  bool filter_overlong_prompts = false;
  Truncation truncation = Truncation::kDiscard;
  std::optional<std::int64_t> max_samples, max_val_samples;  // prompts; null: all
  // The weights of the data sets that are mixed, by data_source; empty: prompts come as often as
  // each other.
  std::map<std::string, double> mixture;
};

// Supervised steps before reinforcement learning begins: the learner's keys, and the data.
struct WarmStartSpec : learner::WarmStartConfig {
  std::vector<std::filesystem::path> train_files;
};

// How many completions samples.jsonl gets, failures besides.
struct SamplesSpec {
  std::optional<std::int64_t> per_step;  // samples of a training step; null: those of one group
  std::optional<std::int64_t> evaluation = 160;  // samples of each evaluation; nullopt: "all"
};

// How much of what a run writes stays on the disk.
struct RetentionSpec {
  std::int64_t samples_bytes = std::int64_t{64} << 20;
  std::int64_t metrics_bytes = std::int64_t{256} << 20;
  std::int64_t journal_bytes = std::int64_t{256} << 20;
  std::int64_t archive_bytes = std::int64_t{1} << 30;
  std::int64_t tracker_bytes = std::int64_t{1} << 30;  // of each tracker
  std::int64_t replay_bytes = std::int64_t{32} << 30;
};

// How the run appears in trackers of experiments, and among the runs of this TANDEM_HOME.
struct TrackingSpec {
  std::optional<std::string> project, entity;  // null: the tracker's own defaults
  std::optional<std::string> run_name;         // null: the run's id
  std::optional<std::string> group;
  std::vector<std::string> tags;
  std::optional<std::string> notes;
};

// The gang of ranks that trains, and how often it saves and evaluates. A step is one batch and one
// policy version, whatever the number of optimizer steps within it.
struct LearnerSpec {
  std::int64_t ranks = 1;
  std::int64_t total_training_steps = 1500;
  std::optional<std::int64_t> ppo_mini_batch_size;  // groups; null: the whole batch
  std::int64_t ppo_epochs = 1;
  std::int64_t save_freq = 100;  // steps; 0: only at the end, and by the next two keys
  std::optional<std::int64_t> save_every_epochs;
  std::optional<double> save_every_minutes;
  std::int64_t test_freq = 50;  // steps; 0: only before and after
  bool val_before_train = true;
  // A rank packs whole sequences into a forward pass of so many tokens.
  std::int64_t max_token_len = 8192;  // tokens
  bool enable_gradient_checkpointing = false;
  double observe_fraction = 0.1;         // of the groups without a gradient, for metrics
  std::int64_t max_nonfinite_steps = 5;  // skipped in a row; one more ends the job
  // Whether `tandem run --resume` may continue the run. A learner that restarts while its job runs
  // loads the last checkpoint in both modes.
  ResumeMode resume_mode = ResumeMode::kAuto;
  std::int64_t max_ckpt_to_keep = 2;
  std::optional<std::string> keep_best;  // a key of evaluations' records in metrics.jsonl
  KeepBestMode keep_best_mode = KeepBestMode::kMax;
  learner::OptimizerConfig optimizer;
};

// How far generation and training may drift apart: the letters K, L and m of the staleness budget
// (scheduler/fleet/staleness.h). The rules require L <= K and m <= L + 1.
struct AsyncSpec {
  std::int64_t max_staleness = 2;         // K, policy versions
  std::optional<std::int64_t> lookahead;  // L; null: the default, see lookahead() below
  Schedule schedule = Schedule::kBudget;
  bool partial_rollout = true;
  KvOnUpdate kv_on_update = KvOnUpdate::kKeep;
  std::int64_t trigger_parameter_sync_step = 1;  // m, steps per publication
  // Trajectories that a rollout actor holds at a time; null: as many as its engine can run.
  std::optional<std::int64_t> max_concurrent_rollouts;
};

// How a version of the weights reaches the rollouts.
struct WeightBroadcastSpec {
  BroadcastType type = BroadcastType::kAuto;
  BroadcastDelta delta = BroadcastDelta::kAuto;
  double timeout_s = 30;               // seconds without progress of one version
  std::int64_t bucket_megabytes = 16;  // MiB under way at a time
};

// How the number of rollouts follows the trainer (scheduler/fleet/autoscale.h).
struct AutoscaleSpec {
  std::int64_t min = 1, max = 1;  // rollouts
  double target_trainer_idle = 0.05;
  double headroom = 0.8;
  std::int64_t window_steps = 32;
  double cooldown_s = 300;
};

// Resources of each rollout actor: CPUs and GPUs that placement reserves, and threads that its
// engine uses.
struct RolloutPoolSpec {
  double cpus_per_actor = 0.5;         // reserved
  std::int64_t threads_per_actor = 1;  // used
  double gpus_per_actor = 0;           // a share of one, or whole ones; 0: it runs on the CPU
  PoolStrategy strategy = PoolStrategy::kPack;
  // Its end from outside is no failure: it drains and another one takes its place.
  bool preemptible = false;
  std::optional<AutoscaleSpec> autoscale;  // absent: rollout.replicas, and what users ask for
};

// The same for each rank of the learner.
struct LearnerPoolSpec {
  double cpus_per_actor = 0.5;
  std::int64_t threads_per_actor = 1;
  double gpus_per_actor = 0;
  PoolStrategy strategy = PoolStrategy::kPack;
  bool preemptible = false;  // no job may set it: a key for its refusal
};

// The section `pools`: resources of an actor of each role.
struct PoolsSpec {
  RolloutPoolSpec rollout;
  LearnerPoolSpec learner;
  RewardPoolSpec reward;
};

// The whole job, section by section in the order of the printed file.
struct JobSpec {
  std::string name;
  std::int64_t seed = 17;
  bool save_on_cancel = true;  // a job that is cancelled saves a checkpoint first
  bool tensorboard = true;     // false: `trackers` has none either
  std::vector<std::string> trackers{"tensorboard"};  // names of TrackerName
  Recording record = Recording::kNone;
  TrackingSpec tracking;
  RetentionSpec retention;
  ModelSpec model;
  DataSpec data;
  std::optional<WarmStartSpec> warm_start;  // absent: RL starts from the model as it is
  RolloutSpec rollout;
  EvalSpec eval;
  RewardSpec reward;
  SamplesSpec samples;
  LearnerSpec learner;
  learner::AlgorithmConfig algorithm;  // settle() in job_rules.h fits some fields to others
  AsyncSpec async;
  WeightBroadcastSpec weight_broadcast;
  PoolsSpec pools;
  std::optional<scheduler::Pricing> pricing;  // absent: nothing has a cost
  ActorsSpec actors;
};

// False for a job of actors alone, whose other sections are not used.
bool trains(const JobSpec& job);
bool has_tracker(const JobSpec& job, TrackerName tracker);
std::int64_t updates_per_batch(const JobSpec& job);  // optimizer steps that one batch makes
// The lookahead L: the given one, or the default for K (scheduler/fleet/staleness.h).
std::int64_t lookahead(const AsyncSpec& async);

}  // namespace tandem::job
