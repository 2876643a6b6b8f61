// The rows of the job table for the sections `rollout`, `eval` and `pools.rollout`; job_keys.cc
// explains how rows work.
#include <algorithm>
#include <sstream>
#include <string>

#include "actors/job/key_fields.h"

namespace tandem::job {
namespace {

// Completions of one prompt.
constexpr double kGroupSizeMax = 4096;

using J = JobSpec;

const Key kRolloutKeys[] = {
    {.path = "rollout.name",
     .field = [](J& j) { return slot(j.rollout.name); },
     .description = "The engine that generates. `native`: in the rollout's own process. `vllm`, "
                    "`sglang`, `tensorrt_llm`: a server of vLLM, SGLang or TensorRT-LLM for each "
                    "rollout, which it starts, or finds at `rollout.engine.url`."},
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
     .field = [](J& j) { return slot(j.rollout.shape.tensor_model_parallel_size); },
     .description =
         "GPUs that share one copy of the model, in the server of an engine that is one.",
     .range = between(1, kGpusMax),
     .unit = "GPUs"},
    {.path = "rollout.data_parallel_size",
     .field = [](J& j) { return slot(j.rollout.shape.data_parallel_size); },
     .description = "Copies of the model in one server.",
     .range = between(1, kGpusMax),
     .unit = "copies"},
    {.path = "rollout.dtype",
     .field = [](J& j) { return slot(j.rollout.shape.dtype); },
     .description = "What a server computes in; null: `model.dtype`. The native engine computes in "
                    "`model.dtype`, and refuses another one."},
    {.path = "rollout.quantization",
     .field = [](J& j) { return slot(j.rollout.shape.quantization); },
     .description = "How a server quantises the weights that come, by its own name for it, as in "
                    "`fp8`; null: as the model's configuration says."},
    {.path = "rollout.enforce_eager",
     .field = [](J& j) { return slot(j.rollout.shape.enforce_eager); },
     .description = "A server records no CUDA graphs."},
    {.path = "rollout.load_format",
     .field = [](J& j) { return slot(j.rollout.shape.load_format); },
     .description = "What a server has before the first version of the weights comes: `dummy`, "
                    "random ones, or with `auto` those of `model.path`."},
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

    // Section `rollout.engine_kwargs`.
    {.path = "rollout.engine_kwargs.vllm",
     .field = [](J& j) { return slot(j.rollout.shape.vllm); },
     .description = "Further settings of a vLLM that is started, by its own names, as in "
                    "`{ swap_space: 4, enable_expert_parallel: true }`. They come after "
                    "Tandem's and before `rollout.engine.args`."},
    {.path = "rollout.engine_kwargs.sglang",
     .field = [](J& j) { return slot(j.rollout.shape.sglang); },
     .description = "The same for SGLang, as in `{ attention_backend: fa3 }`."},
    {.path = "rollout.engine_kwargs.tensorrt_llm",
     .field = [](J& j) { return slot(j.rollout.shape.tensorrt_llm); },
     .description = "The same for TensorRT-LLM: settings of its LLM, as in "
                    "`{ moe_expert_parallel_size: 2 }`."},

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
     .description = "Further arguments of the server, as in [--async-scheduling]; of two equal "
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
                    "completions, or to answer one call of an update of its weights; after that "
                    "it is asked again.",
     .range = above_to(0, kDayInSeconds),
     .unit = "seconds"},
    {.path = "rollout.engine.logprob_tolerance",
     .field = [](J& j) { return slot(j.rollout.engine.logprob_tolerance); },
     .description = "How far a server's log-probabilities of a probe may be off the learner's on "
                    "average, before a version counts as installed; null: 0.02 where "
                    "`model.dtype` is float32 and `rollout.dtype` is no other, else 0.5. Raise it "
                    "for quantised weights.",
     .range = above_to(0, 100),
     .unit = "nats"},
    {.path = "rollout.engine.weight_transfer",
     .field = [](J& j) { return slot(j.rollout.engine.weight_transfer); },
     .description = "How a version goes from a rollout to its server. `tcp`: the server reads it "
                    "from the rollout, by a module of Tandem's that vLLM loads; `disk`: the "
                    "rollout writes a folder, which the server reads; `nccl`: the rollout "
                    "broadcasts it to the ranks of a vLLM or SGLang on other GPUs; `ipc`: a vLLM "
                    "reads it from a block of the GPU that it shares with its rollout; `auto`: "
                    "`tcp` for vLLM, "
                    "`disk` for SGLang."},
    {.path = "rollout.engine.trusted_network",
     .field = [](J& j) { return slot(j.rollout.engine.trusted_network); },
     .description = "Whether weights may travel unencrypted, by `tcp` or `nccl`, to a server of "
                    "`url` on another host."},
    {.path = "rollout.engine.packed",
     .field = [](J& j) { return slot(j.rollout.engine.packed); },
     .description =
         "For `weight_transfer: nccl` to vLLM: tensors travel together, in chunks of 64 MiB "
         "and more, or one by one."},
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
     .description = "GPUs reserved for a rollout actor: a share of one (0.5), 1, or as many as "
                    "the server of an engine takes. With 0 it runs on the CPU.",
     .range = between(0, kGpusMax),
     .unit = "GPUs"},
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

// Adds the keys of how a server is started that the job gives, and that mean nothing in it.
void start_rules(const JobSpec& job, std::vector<Violation>& broken) {
  const EngineShapeSpec& shape = job.rollout.shape;
  const bool native = job.rollout.name == EngineName::kNative;
  if (!native && job.rollout.engine.url.empty()) return;
  const EngineShapeSpec none;
  const bool as_model = shape.dtype && spelling(*shape.dtype) == spelling(job.model.dtype);
  const std::pair<const char*, bool> given[] = {
      {"tensor_model_parallel_size",
       shape.tensor_model_parallel_size != none.tensor_model_parallel_size},
      {"data_parallel_size", shape.data_parallel_size != none.data_parallel_size},
      {"dtype", shape.dtype && !(native && as_model)},
      {"quantization", shape.quantization != none.quantization},
      {"enforce_eager", shape.enforce_eager != none.enforce_eager},
      {"load_format", shape.load_format != none.load_format}};
  for (const auto& [key, differs] : given) {
    if (!differs) continue;
    const std::string path = "rollout." + std::string(key);
    if (native)
      broken.push_back({path, "the native engine does not use `" + path + "`",
                        "leave it out, or use `rollout.name: vllm`"});
    else
      broken.push_back({path,
                        "`" + path +
                            "` is for a server that Tandem starts, and "
                            "`rollout.engine.url` names some that run already",
                        "leave it out"});
  }
}

// Adds the rules that a job breaks between the GPUs that a rollout has and those that it uses.
void gpu_rules(const JobSpec& job, std::vector<Violation>& broken) {
  const EngineServerSpec& engine = job.rollout.engine;
  const EngineShapeSpec& shape = job.rollout.shape;
  const double gpus = job.pools.rollout.gpus_per_actor;
  const auto wrong = [&](const std::string& message, const std::string& help) {
    broken.push_back({"pools.rollout.gpus_per_actor", message, help});
  };
  std::ostringstream has_gpus;
  has_gpus << gpus;
  const std::string has = has_gpus.str();
  if (job.rollout.name == EngineName::kNative) {
    if (gpus > 1)
      wrong("the native engine computes on one GPU, and a rollout has " + has,
            "set it to 1, or use `rollout.name: vllm`");
    return;
  }
  if (!engine.url.empty()) {
    if (gpus > 1)
      wrong("the servers at `rollout.engine.url` have GPUs of their own, and a rollout has " + has,
            "set it to 0, or to 1 for `rollout.engine.weight_transfer: nccl` or `ipc`");
    return;
  }
  // On a CPU a server's ranks are processes; and other settings than Tandem's may spread it over
  // GPUs in ways of its own.
  if (gpus == 0 || engine.command || !engine.args.empty() || kwargs_of(job.rollout) != JsonObject{})
    return;
  const std::int64_t ranks = shape.tensor_model_parallel_size * shape.data_parallel_size;
  if (static_cast<double>(ranks) != std::max(gpus, 1.0))
    wrong("the server of a rollout computes on " + std::to_string(ranks) +
              " GPUs, `rollout.tensor_model_parallel_size` times `rollout.data_parallel_size`, and "
              "the rollout has " +
              has,
          "set it to " + std::to_string(ranks));
}

// TensorRT-LLM computes on GPUs alone, and does not say of what its log-probabilities are.
void trtllm_rules(const JobSpec& job, std::vector<Violation>& broken) {
  if (job.rollout.name != EngineName::kTensorrtLlm) return;
  const EngineServerSpec& engine = job.rollout.engine;
  if (job.pools.rollout.gpus_per_actor == 0 && engine.url.empty() && !engine.command)
    broken.push_back({"pools.rollout.gpus_per_actor",
                      "TensorRT-LLM computes on GPUs alone, and a rollout has none",
                      "set it to 1, or use `rollout.name: vllm`"});
  const rollout::SamplingParams& s = job.rollout.sampling;
  for (const auto& [key, differs] :
       {std::pair("temperature", s.temperature != 1), std::pair("top_p", s.top_p < 1),
        std::pair("top_k", s.top_k > 0), std::pair("min_p", s.min_p > 0)})
    if (differs)
      broken.push_back({std::string("rollout.") + key,
                        "TensorRT-LLM may tell log-probabilities from before `rollout." +
                            std::string(key) + "`, and cannot be asked",
                        "leave it out, or use `rollout.name: vllm`"});
}

// Adds the rules that a job breaks whose engine has a server of its own.
void server_rules(const JobSpec& job, std::vector<Violation>& broken) {
  start_rules(job, broken);
  gpu_rules(job, broken);
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
  const bool by_ipc = engine.weight_transfer == WeightTransfer::kIpc;
  const EngineShapeSpec& shape = job.rollout.shape;
  if (by_ipc && (shape.tensor_model_parallel_size > 1 || shape.data_parallel_size > 1 ||
                 job.pools.rollout.gpus_per_actor > 1))
    broken.push_back({"rollout.engine.weight_transfer",
                      "`rollout.engine.weight_transfer: ipc` is for a server on one GPU",
                      "use `auto`"});
  if ((by_ipc || engine.weight_transfer == WeightTransfer::kNccl) &&
      job.pools.rollout.gpus_per_actor == 0)
    broken.push_back(
        {"rollout.engine.weight_transfer",
         "`rollout.engine.weight_transfer: " + std::string(spelling(engine.weight_transfer)) +
             "` sends from a GPU of the rollout, and `pools.rollout.gpus_per_actor` "
             "is 0",
         by_ipc ? "use `auto`, or give each rollout its server's GPU"
                : "use `auto`, or give each rollout a GPU beside its server's"});
  trtllm_rules(job, broken);
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
                      "`rollout.engine.url` names fewer servers (" +
                          std::to_string(engine.url.size()) + ") than there are rollouts (" +
                          std::to_string(most) + ")",
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
