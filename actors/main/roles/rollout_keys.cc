// The rows of the job table for the sections `rollout`, `eval` and `pools.rollout`; job_keys.cc
// explains how rows work.
#include <algorithm>
#include <array>
#include <string>

#include "actors/job/key_fields.h"

namespace tandem::job {
namespace {

// Completions of one prompt.
constexpr double kGroupSizeMax = 4096;
// Engines that a user may know from other systems: refused as "not in this version", not as
// misspelt.
constexpr std::array<std::string_view, 1> kLaterEngines{"tensorrt_llm"};

using J = JobSpec;

const Key kRolloutKeys[] = {
    {.path = "rollout.name",
     .field = [](J& j) { return slot(j.rollout.name); },
     .description = "The engine that generates. `native`: in the rollout's own process. `vllm`, "
                    "`sglang`: a server of vLLM or SGLang for each rollout, which it starts, or "
                    "finds at `rollout.engine.url`.",
     .later_values = kLaterEngines},
    {.path = "rollout.replicas",
     .field = [](J& j) { return slot(j.rollout.replicas); },
     .description = "Rollout actors at the start; `tandem scale` changes it while the job runs.",
     .range = between(1, kActorsMax),
     .unit = "actors"},
    {.path = "rollout.n",
     .field = [](J& j) { return slot(j.rollout.n); },
     .description = "Completions per prompt (a group).",
     .range = between(1, kGroupSizeMax),
     .unit = "trajectories"},
    {.path = "rollout.temperature",
     .field = [](J& j) { return slot(j.rollout.sampling.temperature); },
     .description = "Log-probabilities are of softmax(logits / temperature) in engine and learner.",
     .range = as_float(between(rollout::kTemperatureMin, 100))},
    {.path = "rollout.top_p",
     .field = [](J& j) { return slot(j.rollout.sampling.top_p); },
     .description = "Sample from the smallest set of tokens with this probability; 1: off.",
     .range = as_float(above_to(0, 1))},
    {.path = "rollout.top_k",
     .field = [](J& j) { return slot(j.rollout.sampling.top_k); },
     .description = "Sample from so many likeliest tokens; 0: off.",
     .range = between(0, kTokensMax),
     .unit = "tokens"},
    {.path = "rollout.min_p",
     .field = [](J& j) { return slot(j.rollout.sampling.min_p); },
     .description = "Drop tokens below this share of the likeliest one's probability; 0: off.",
     .range = as_float(below(0, 1))},
    {.path = "rollout.min_tokens",
     .field = [](J& j) { return slot(j.rollout.sampling.min_tokens); },
     .description = "No end before so many sampled tokens.",
     .range = between(0, kTokensMax),
     .unit = "tokens"},
    {.path = "rollout.stop",
     .field = [](J& j) { return slot(j.rollout.sampling.stop); },
     .description = "Texts that end a completion, also across token borders."},
    {.path = "rollout.stop_token_ids",
     .field = [](J& j) { return slot(j.rollout.sampling.stop_token_ids); },
     .description = "Tokens that end a completion, beside the model's own.",
     .range = between(0, kTokensMax)},
    {.path = "rollout.tensor_model_parallel_size",
     .field = [](J& j) { return slot(j.rollout.tensor_model_parallel_size); },
     .description = "Ranks that share one copy of the model.",
     .range = between(1, kActorsMax),
     .unit = "ranks",
     .later_above = 1},
    {.path = "rollout.gpu_memory_utilization",
     .field = [](J& j) { return slot(j.rollout.gpu_memory_utilization); },
     .description = "Share of the device's memory (on a CPU: of the memory the node offers) that "
                    "an engine may take.",
     .range = above_to(0, 1)},
    {.path = "rollout.max_num_seqs",
     .field = [](J& j) { return slot(j.rollout.args.max_num_seqs); },
     .description = "Sequences that one engine decodes at a time.",
     .range = between(1, 65536),
     .unit = "sequences"},
    {.path = "rollout.max_num_batched_tokens",
     .field = [](J& j) { return slot(j.rollout.args.max_num_batched_tokens); },
     .description = "Tokens in one forward pass; longer prompts are prefilled in chunks.",
     .range = between(1, kTokensMax),
     .unit = "tokens"},
    {.path = "rollout.block_size",
     .field = [](J& j) { return slot(j.rollout.args.block_size); },
     .description = "Positions in one KV page; a multiple of 16.",
     .range = between(16, 4096),
     .unit = "tokens"},
    {.path = "rollout.enable_prefix_caching",
     .field = [](J& j) { return slot(j.rollout.args.enable_prefix_caching); },
     .description = "Keep the pages of finished prompts for later ones of the same version."},
    {.path = "rollout.cudagraph_capture_sizes",
     .field = [](J& j) { return slot(j.rollout.args.cudagraph_capture_sizes); },
     .description = "Batch sizes captured as CUDA graphs; one above `rollout.max_num_seqs` stands "
                    "for that. Without a GPU there is nothing to capture.",
     .range = between(1, 65536),
     .unit = "sequences"},
    {.path = "rollout.async_scheduling",
     .field = [](J& j) { return slot(j.rollout.args.async_scheduling); },
     .description = "On a GPU, plan and queue a step while the one before computes. With "
                    "`model.batch_invariant` tokens come out the same."},

    // Section `rollout.engine`.
    {.path = "rollout.engine.command",
     .field = [](J& j) { return slot(j.rollout.engine.command); },
     .description = "The argv that starts a server, before the arguments that Tandem gives; null: "
                    "the engine's own, as in `vllm serve`. A program with a `/` is a relative "
                    "path.",
     .argv = true},
    {.path = "rollout.engine.python",
     .field = [](J& j) { return slot(j.rollout.engine.python); },
     .description = "The interpreter of the virtual environment that has the engine, such as "
                    "`.venv/bin/python`; null: its program is found in PATH. One with a `/` is a "
                    "relative path."},
    {.path = "rollout.engine.args",
     .field = [](J& j) { return slot(j.rollout.engine.args); },
     .description = "Further arguments of the server, as in [--quantization, fp8]; of two equal "
                    "options the server takes the last one, which is here."},
    {.path = "rollout.engine.env",
     .field = [](J& j) { return slot(j.rollout.engine.env); },
     .description = "Environment variables of the server, beside the rollout's own."},
    {.path = "rollout.engine.url",
     .field = [](J& j) { return slot(j.rollout.engine.url); },
     .description = "Servers that run already, http://HOST:PORT, one for each rollout actor in the "
                    "order of their numbers; []: each rollout starts one. Their weights are "
                    "replaced, and they go on when the job ends."},
    {.path = "rollout.engine.startup_timeout_s",
     .field = [](J& j) { return slot(j.rollout.engine.startup_timeout_s); },
     .description = "The time that a server has until it answers; loading and compiling a large "
                    "model takes minutes.",
     .range = above_to(0, kDayInSeconds),
     .unit = "seconds"},
    {.path = "rollout.engine.request_timeout_s",
     .field = [](J& j) { return slot(j.rollout.engine.request_timeout_s); },
     .description = "The time in which the server has to answer a prompt with all of its "
                    "completions, or to take a version of the weights; after that it is asked "
                    "again.",
     .range = above_to(0, kDayInSeconds),
     .unit = "seconds"},
    {.path = "rollout.engine.logprob_tolerance",
     .field = [](J& j) { return slot(j.rollout.engine.logprob_tolerance); },
     .description = "How far a server's log-probabilities of a probe may be off the learner's on "
                    "average, before a version counts as installed; null: 0.02 where `model.dtype` "
                    "is float32, 0.5 for bfloat16. Raise it for quantised weights.",
     .range = above_to(0, 100),
     .unit = "nats"},
    {.path = "rollout.engine.weight_transfer",
     .field = [](J& j) { return slot(j.rollout.engine.weight_transfer); },
     .description = "How a version goes from a rollout to its server. `tcp`: the server reads it "
                    "from the rollout, by a module of Tandem's that vLLM loads; `disk`: the "
                    "rollout writes a folder, which the server reads; `nccl`: the rollout "
                    "broadcasts it to the ranks of a vLLM on other GPUs; `auto`: `tcp` for vLLM, "
                    "`disk` for SGLang."},
    {.path = "rollout.engine.packed",
     .field = [](J& j) { return slot(j.rollout.engine.packed); },
     .description = "For `weight_transfer: nccl`: tensors travel together, in chunks of 64 MiB and "
                    "more, or one by one."},
    {.path = "rollout.engine.weights_dir",
     .field = [](J& j) { return slot(j.rollout.engine.weights_dir); },
     .description = "Where rollouts write versions for `weight_transfer: disk`, one at a time "
                    "each, such as a folder in /dev/shm; a server that runs already has to see it "
                    "by the same path. null: the run's directory."},

    // Section `eval`; as for `rollout`, but evaluations sample outside the ledger and by seeds of
    // their own.
    {.path = "eval.n",
     .field = [](J& j) { return slot(j.eval.n); },
     .description = "Completions of each prompt that an evaluation samples. With more than 1 it "
                    "tells pass@k as well, and needs `eval.temperature` above 0.",
     .range = between(1, 1024),
     .unit = "completions"},
    {.path = "eval.temperature",
     .field = [](J& j) { return slot(j.eval.temperature); },
     .description = "0: each token is the likeliest one (greedy). Above 0: completions are "
                    "sampled from softmax(logits / temperature), by seeds that follow from the "
                    "job's, so that an evaluation repeats.",
     .range = as_float(between(0, 100))},
    {.path = "eval.top_p",
     .field = [](J& j) { return slot(j.eval.top_p); },
     .description = "As `rollout.top_p`, of what an evaluation samples.",
     .range = as_float(above_to(0, 1))},
    {.path = "eval.top_k",
     .field = [](J& j) { return slot(j.eval.top_k); },
     .description = "As `rollout.top_k`, of what an evaluation samples.",
     .range = between(0, kTokensMax),
     .unit = "tokens"},
    {.path = "eval.greedy",
     .field = [](J& j) { return slot(j.eval.greedy); },
     .description = "Beside what is sampled, one greedy completion of each prompt, which has a "
                    "mean of its own."},
    {.path = "eval.rollout_share",
     .field = [](J& j) { return slot(j.eval.rollout_share); },
     .description = "How much of `rollout.max_num_seqs` an evaluation may take while prompts to "
                    "train wait that the same version of the weights may answer. Where none waits "
                    "it takes what is free. 1: training waits until the evaluation is generated.",
     .range = above_to(0, 1)},
};

// Section `pools.rollout`.
const Key kRolloutPoolKeys[] = {
    {.path = "pools.rollout.cpus_per_actor",
     .field = [](J& j) { return slot(j.pools.rollout.cpus_per_actor); },
     .description = "CPUs reserved for a rollout actor; fractions are fine.",
     .range = between(0, kThreadsMax),
     .unit = "CPUs"},
    {.path = "pools.rollout.threads_per_actor",
     .field = [](J& j) { return slot(j.pools.rollout.threads_per_actor); },
     .description = "Threads that its engine uses.",
     .range = between(1, kThreadsMax),
     .unit = "threads"},
    {.path = "pools.rollout.gpus_per_actor",
     .field = [](J& j) { return slot(j.pools.rollout.gpus_per_actor); },
     .description = "GPUs reserved for a rollout actor: a share of one (0.5), or 1. With 0 it runs "
                    "on the CPU.",
     .range = between(0, kGpusMax),
     .unit = "GPUs",
     .later_above = 1},
    {.path = "pools.rollout.strategy",
     .field = [](J& j) { return slot(j.pools.rollout.strategy); },
     .description = "`pack` fills nodes and GPUs one after another; `spread` takes those with the "
                    "most left."},
    {.path = "pools.rollout.preemptible",
     .field = [](J& j) { return slot(j.pools.rollout.preemptible); },
     .description = "A rollout may be ended from outside at any time, as on machines that are "
                    "taken back: on SIGTERM it finishes its groups or hands them back, and starts "
                    "again; this and the loss of its node count against no restart budget."},
    // Section `pools.rollout.autoscale`.
    {.path = "pools.rollout.autoscale.min",
     .field = [](J& j) { return slot(j.pools.rollout.autoscale->min); },
     .description = "The fewest rollouts.",
     .range = between(1, kActorsMax),
     .unit = "actors"},
    {.path = "pools.rollout.autoscale.max",
     .field = [](J& j) { return slot(j.pools.rollout.autoscale->max); },
     .description = "The most rollouts.",
     .range = between(1, kActorsMax),
     .unit = "actors",
     .presence = Presence::kRequired},
    {.path = "pools.rollout.autoscale.target_trainer_idle",
     .field = [](J& j) { return slot(j.pools.rollout.autoscale->target_trainer_idle); },
     .description = "A learner that waits for samples for a greater share of its time gets more "
                    "rollouts.",
     .range = {.min = 0, .max = 1, .min_open = true, .max_open = true}},
    {.path = "pools.rollout.autoscale.headroom",
     .field = [](J& j) { return slot(j.pools.rollout.autoscale->headroom); },
     .description = "The share of a rollout's measured tokens per second that is counted on.",
     .range = above_to(0, 1)},
    {.path = "pools.rollout.autoscale.window_steps",
     .field = [](J& j) { return slot(j.pools.rollout.autoscale->window_steps); },
     .description = "Steps that are measured for one decision.",
     .range = between(2, 64),
     .unit = "steps"},
    {.path = "pools.rollout.autoscale.cooldown_s",
     .field = [](J& j) { return slot(j.pools.rollout.autoscale->cooldown_s); },
     .description = "No change goes the other way sooner after the one before.",
     .range = between(0, kDayInSeconds),
     .unit = "seconds"},
};

// Adds the rules that a job breaks whose engine has a server of its own.
void server_rules(const JobSpec& job, std::vector<Violation>& broken) {
  if (job.rollout.name == EngineName::kNative) return;
  const EngineServerSpec& engine = job.rollout.engine;
  const auto transfers = rollout::transfers_to(job.rollout.name);
  const std::string name = "`rollout.name: " + std::string(spelling(job.rollout.name)) + "`";
  const weights::WeightsTraits& weights = weights::traits_of(job.weight_broadcast.type);
  if (job.async.schedule == Schedule::kFixedLag)
    broken.push_back(
        {"async.schedule",
         "`async.schedule: fixed_lag` repeats a run bit for bit, which " + name + " cannot promise",
         "use `schedule: budget`, or `rollout.name: native`"});
  if (weights.arrives_on_gpu)
    broken.push_back({"weight_broadcast.type",
                      "`weight_broadcast.type: " + std::string(weights.name) +
                          "` ends in GPU memory of the rollout, and " + name +
                          " has a server of its own",
                      "use `weight_broadcast.type: auto`"});
  if (engine.weight_transfer != WeightTransfer::kAuto &&
      std::ranges::find(transfers, engine.weight_transfer) == transfers.end())
    broken.push_back(
        {"rollout.engine.weight_transfer",
         "`rollout.engine.weight_transfer: " + std::string(spelling(engine.weight_transfer)) +
             "` does not lead to " + name,
         "use `auto`"});
  if (engine.weight_transfer == WeightTransfer::kNccl && job.pools.rollout.gpus_per_actor == 0)
    broken.push_back({"rollout.engine.weight_transfer",
                      "`rollout.engine.weight_transfer: nccl` sends from a GPU of the rollout, and "
                      "`pools.rollout.gpus_per_actor` is 0",
                      "use `auto`, or give each rollout a GPU beside its server's"});
  if (engine.url.empty()) return;
  if (engine.command || engine.python || !engine.args.empty() || !engine.env.empty())
    broken.push_back({"rollout.engine.url",
                      "`rollout.engine` has a `url` of servers that run already, and how one is "
                      "to be started",
                      "leave out the `url`, or `command`, `python`, `args` and `env`"});
  if (job.rollout.name == EngineName::kSglang && job.rollout.sampling.temperature != 1)
    broken.push_back({"rollout.engine.url",
                      "servers of SGLang that run already may tell log-probabilities from before "
                      "the temperature, and cannot be asked",
                      "leave the `url` out, so that Tandem starts them; or set "
                      "`rollout.temperature: 1`"});
  const std::int64_t most =
      job.pools.rollout.autoscale ? job.pools.rollout.autoscale->max : job.rollout.replicas;
  if (most > std::ssize(engine.url))
    broken.push_back({"rollout.engine.url",
                      "`rollout.engine.url` has " + std::to_string(engine.url.size()) +
                          " servers for " + std::to_string(most) + " rollouts",
                      "name one for each rollout"});
}

// The number at the start is one that the autoscaler could choose.
void autoscale_rules(const JobSpec& job, std::vector<Violation>& broken) {
  const auto& autoscale = job.pools.rollout.autoscale;
  if (!autoscale) return;
  const auto text = [](std::int64_t number) { return std::to_string(number); };
  if (autoscale->min > autoscale->max)
    return broken.push_back({"pools.rollout.autoscale.max",
                             "`pools.rollout.autoscale.max` is " + text(autoscale->max) +
                                 ", less than `min`, " + text(autoscale->min),
                             "raise the one or lower the other"});
  if (job.rollout.replicas < autoscale->min || job.rollout.replicas > autoscale->max)
    broken.push_back({"rollout.replicas",
                      "`rollout.replicas` is " + text(job.rollout.replicas) +
                          ", and `pools.rollout.autoscale` goes from " + text(autoscale->min) +
                          " to " + text(autoscale->max),
                      "start with a number of that range"});
}

void rollout_rules(const JobSpec& job, std::vector<Violation>& broken) {
  server_rules(job, broken);
  autoscale_rules(job, broken);
}

}  // namespace

RoleKeys rollout_keys() {
  return {.own = kRolloutKeys, .pool = kRolloutPoolKeys, .rules = rollout_rules};
}

}  // namespace tandem::job
