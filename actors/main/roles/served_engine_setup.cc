#include "actors/main/roles/served_engine_setup.h"

#include <charconv>
#include <filesystem>
#include <string>
#include <utility>

#include "actors/main/roles/role_config.h"
#include "actors/model/parameters.h"
#include "actors/rank/rank_failure.h"
#include "actors/rollout/external/served_server.h"
#include "runtime/base/secret.h"
#include "runtime/http/http_client.h"
#include "runtime/link/endpoint.h"
#include "runtime/node/resources.h"
#include "runtime/weights/weights_config.h"

namespace tandem::app {
namespace {

// Of a probe's log-probabilities. Its tokens are random, so that they are large in magnitude, and
// servers round logits to the model's type: 0.13 was seen with bf16, 3e-5 with f32.
constexpr double kToleranceF32 = 0.02, kToleranceBf16 = 0.5;
constexpr std::size_t kLabelChars = 12;  // of a random label, enough to tell rollouts apart

// The number at the end of an actor's name: 3 of "JOB/rollout/3".
std::size_t index_of(const std::string& actor) {
  std::size_t index = 0;
  const char* const end = actor.data() + actor.size();
  std::from_chars(actor.data() + actor.rfind('/') + 1, end, index);
  return index;
}

Result<std::string> url_for(const messages::StartRank& start, const job::JobSpec& job) {
  const std::vector<std::string>& urls = job.rollout.engine.url;
  if (urls.empty()) return std::string();
  const std::size_t index = index_of(start.actor);
  if (index < urls.size()) return urls[index];
  return Error{
      ErrorCode::kInvalid,
      start.actor + " has no server: `rollout.engine.url` names " + std::to_string(urls.size()),
      "rollout.engine.url", "name one for each rollout, or scale down"};
}

bool on_cpu(const job::JobSpec& job) { return job.pools.rollout.gpus_per_actor == 0; }

rollout::WeightTransfer weight_transfer(const job::JobSpec& job) {
  const rollout::WeightTransfer chosen = job.rollout.engine.weight_transfer;
  return chosen == rollout::WeightTransfer::kAuto ? rollout::transfers_to(job.rollout.name).front()
                                                  : chosen;
}

// SGLang's are after the temperature and before filters, as the learner's; vLLM's depend on how it
// was started.
bool needs_processed(const job::JobSpec& job) {
  const rollout::SamplingParams& s = job.rollout.sampling;
  return job.rollout.name == rollout::EngineName::kVllm &&
         (s.temperature != 1 || s.top_p < 1 || s.top_k > 0 || s.min_p > 0);
}

std::string dtype_of(const job::JobSpec& job) {
  const auto& own = job.rollout.shape.dtype;
  return std::string(own ? spelling(*own) : spelling(job.model.dtype));
}

bool learner_is_f32(const job::JobSpec& job) {
  return job.model.dtype == job::ModelDtype::kFloat32;
}
bool server_is_f32(const job::JobSpec& job) {
  const auto& own = job.rollout.shape.dtype;
  return own ? *own == job::EngineDtype::kFloat32 : learner_is_f32(job);
}

rollout::LaunchSpec launch_of(const job::JobSpec& job, const rollout::EngineConfig& config,
                              rollout::WeightTransfer transfer, const std::string& name) {
  const job::EngineShapeSpec& shape = job.rollout.shape;
  return {.model = job.model.path.string(),
          .dtype = dtype_of(job),
          .name = name,
          .transfer = transfer,
          .positions_max = config.max_prompt_length + config.max_response_length,
          .max_num_seqs = config.args.max_num_seqs,
          .max_num_batched_tokens = config.args.max_num_batched_tokens,
          .gpu_memory_utilization = job.rollout.gpu_memory_utilization,
          .on_cpu = on_cpu(job),
          .tensor_parallel = shape.tensor_model_parallel_size,
          .data_parallel = shape.data_parallel_size,
          .quantization = shape.quantization.value_or(""),
          .enforce_eager = shape.enforce_eager,
          .load_format = std::string(spelling(shape.load_format)),
          .kwargs = kwargs_of(job.rollout).text};
}

// Of this rollout alone, also among those of other runs.
std::filesystem::path weights_folder(const messages::StartRank& start, const job::JobSpec& job) {
  const std::filesystem::path run(start.run_dir);
  // Of this host: its locks may say nothing to others that see the same folder.
  const std::string own =
      "rollout-" + std::to_string(index_of(start.actor)) + "@" + node::hostname();
  if (const auto& named = job.rollout.engine.weights_dir)
    return *named / (rollout::kJobFolderPrefix + weights::weights_name(start.job, run)) / own;
  return run / "engine" / "weights" / own;
}

// Where a rollout listens for the server that takes weights from it: on its own host; or, for one
// on another host, at the address that leads there, where the job trusts the network between them.
Result<std::string> address_for(const std::string& url, const job::EngineServerSpec& engine,
                                rollout::WeightTransfer transfer) {
  if (url.empty()) return std::string(link::kLoopback);
  const auto server = http::parse_url(url);
  if (!server) return server.error();
  const auto way = link::way_to(server->server);
  if (!way)
    return Error{way.error().code, way.error().message, url,
                 "is the address in rollout.engine.url right?"};
  if (way->ours == way->theirs || link::is_loopback(way->theirs))
    return std::string(link::kLoopback);
  if (transfer == rollout::WeightTransfer::kIpc)
    return Error{ErrorCode::kInvalid, "the server at " + url + " is on another host",
                 "rollout.engine.weight_transfer", "`ipc` needs it on the GPU of its rollout"};
  if (engine.trusted_network) return way->ours;
  return Error{ErrorCode::kInvalid,
               "the server at " + url +
                   " is on another host, and weights would travel there "
                   "unencrypted",
               "rollout.engine.trusted_network",
               "set it to true where you trust that network, or use "
               "`rollout.engine.weight_transfer: disk`"};
}

// By NCCL the rollout's own GPU sends, which is not the server's; by IPC the one that they share.
Result<rollout::SourceSpec> source_of(RankResources& resources, const messages::StartRank& start,
                                      const job::JobSpec& job, rollout::WeightTransfer transfer,
                                      const device::Manifest& manifest, const std::string& url) {
  const rollout::Dialect& dialect = rollout::dialect_of(job.rollout.name);
  rollout::SourceSpec spec{.manifest = manifest,
                           .folder = weights_folder(start, job),
                           .meeting = dialect.meeting,
                           .name = start.actor,
                           .packed = job.rollout.engine.packed && dialect.packs,
                           .timeout = duration_of(job.rollout.engine.request_timeout_s)};
  const bool nccl = transfer == rollout::WeightTransfer::kNccl;
  if (transfer != rollout::WeightTransfer::kDisk) {
    auto host = address_for(url, job.rollout.engine, transfer);
    if (!host) return rank::of_input(host.error());
    spec.host = *std::move(host);
    if (spec.host != link::kLoopback) spec.ports = resources.network.ports;
  }
  if (!nccl && transfer != rollout::WeightTransfer::kIpc) return spec;
  const auto device = device_of(job.pools.rollout.gpus_per_actor);
  if (!device) return device.error();
  spec.device = *device;
  if (!nccl) return spec;
  if (const auto opened = resources.open_nccl(); !opened) return opened.error();
  spec.nccl = &resources.device.nccl->process();
  return spec;
}

// A rank's failure is told by its message alone.
Error told_whole(Error error) {
  if (!error.help.empty()) error.message += ": " + std::exchange(error.help, "");
  return error;
}

Result<std::unique_ptr<rollout::Engine>> make(RankResources& resources,
                                              const messages::StartRank& start,
                                              const job::JobSpec& job, model::ModelInfo info) {
  const job::EngineServerSpec& engine = job.rollout.engine;
  const rollout::Dialect& dialect = rollout::dialect_of(job.rollout.name);
  auto url = url_for(start, job);
  if (!url) return rank::of_input(url.error());
  rollout::EngineConfig config = engine_config(job, 0);
  const std::string label = "tandem-" + random_secret().substr(0, kLabelChars);
  const rollout::WeightTransfer transfer = weight_transfer(job);
  if (job.rollout.name == rollout::EngineName::kVllm &&
      transfer == rollout::WeightTransfer::kDisk && engine.url.empty() && on_cpu(job) &&
      info.config.tie_word_embeddings)
    return rank::of_input(
        {ErrorCode::kInvalid,
         "vLLM on a CPU keeps its old output head when it loads weights from disk, and this "
         "model's head is its embedding",
         "rollout.engine.weight_transfer", "use `tcp`"});
  auto weights = source_of(resources, start, job, transfer, info.manifest, *url);
  if (!weights) return weights.error();
  auto server =
      rollout::open_server({.dialect = &dialect,
                            .url = *std::move(url),
                            .command = engine.command.value_or(std::vector<std::string>{}),
                            .args = engine.args,
                            .python = engine.python.value_or(job::PlacedName{}).text,
                            .env = engine.env,
                            .launch = launch_of(job, config, transfer, label),
                            .plugin_folder = start.run_dir + "/engine",
                            .needs_processed = needs_processed(job),
                            .startup_timeout = duration_of(engine.startup_timeout_s),
                            .weights = *std::move(weights),
                            .beat = [&resources] { resources.progress.beat(steady_now()); }});
  if (!server) return server.error();
  auto made = rollout::ServedEngine::make(
      {info.config, std::make_shared<const model::Tokenizer>(std::move(info.tokenizer))},
      {.engine = std::move(config),
       .dialect = &dialect,
       .label_prefix = label,
       .manifest = std::move(info.manifest),
       .transfer = transfer,
       .request_timeout = duration_of(engine.request_timeout_s),
       .update_timeout = duration_of(engine.request_timeout_s),
       .logprob_tolerance = engine.logprob_tolerance.value_or(
           learner_is_f32(job) && server_is_f32(job) ? kToleranceF32 : kToleranceBf16)},
      *std::move(server));
  if (!made) return made.error();
  return std::unique_ptr<rollout::Engine>(*std::move(made));
}

}  // namespace

Result<std::unique_ptr<rollout::Engine>> make_served_engine(RankResources& resources,
                                                            const messages::StartRank& start,
                                                            const job::JobSpec& job,
                                                            model::ModelInfo info) {
  auto made = make(resources, start, job, std::move(info));
  if (!made) return told_whole(made.error());
  return made;
}

scheduler::MemoryDemand served_memory(const job::JobSpec& job, const PlannedModel& model) {
  scheduler::MemoryDemand demand;
  const auto published =
      static_cast<std::int64_t>(model::published_manifest(model.config).bytes_total);
  // On a CPU the server's weights are in the host's memory; its pages and libraries are its own
  // affair, as engines differ.
  if (job.rollout.engine.url.empty() && on_cpu(job))
    add_row(demand, "the server's weights",
            published * (server_is_f32(job) ? 4 : 2) / (learner_is_f32(job) ? 4 : 2));
  add_row(demand, "weights that arrive", published);
  add_process(demand, &model);
  return demand;
}

}  // namespace tandem::app
