#include "actors/main/roles/served_engine_setup.h"

#include <charconv>
#include <utility>

#include "actors/main/roles/role_config.h"
#include "actors/model/parameters.h"
#include "actors/rank/rank_failure.h"
#include "actors/rollout/external/served_server.h"
#include "runtime/base/secret.h"

namespace tandem::app {
namespace {

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

// A rank's failure is told by its message alone.
Error told_whole(Error error) {
  if (!error.help.empty()) error.message += ": " + std::exchange(error.help, "");
  return error;
}

}  // namespace

Result<std::unique_ptr<rollout::Engine>> make_served_engine(const messages::StartRank& start,
                                                            const job::JobSpec& job,
                                                            model::ModelInfo info,
                                                            std::function<void()> beat) {
  const job::EngineServerSpec& engine = job.rollout.engine;
  const rollout::Dialect& dialect = rollout::dialect_of(job.rollout.name);
  auto url = url_for(start, job);
  if (!url) return rank::of_input(url.error());
  rollout::EngineConfig config = engine_config(job, 0);
  const std::string label = "tandem-" + random_secret().substr(0, kLabelChars);
  auto server = rollout::open_server(
      {.dialect = &dialect,
       .url = *std::move(url),
       .command = engine.command.value_or(std::vector<std::string>{}),
       .args = engine.args,
       .python = engine.python.value_or(job::PlacedName{}).text,
       .env = engine.env,
       .launch = {.model = job.model.path.string(),
                  .dtype = std::string(spelling(job.model.dtype)),
                  .name = label,
                  .positions_max = config.max_prompt_length + config.max_response_length,
                  .max_num_seqs = config.args.max_num_seqs,
                  .max_num_batched_tokens = config.args.max_num_batched_tokens,
                  .gpu_memory_utilization = job.rollout.gpu_memory_utilization,
                  .on_cpu = job.pools.rollout.gpus_per_actor == 0},
       .plugin_folder = start.run_dir + "/engine",
       .startup_timeout = duration_of(engine.startup_timeout_s),
       .manifest = info.manifest,
       .beat = std::move(beat)});
  if (!server) return told_whole(server.error());
  auto made = rollout::ServedEngine::make(
      {info.config, std::make_shared<const model::Tokenizer>(std::move(info.tokenizer))},
      {.engine = std::move(config),
       .dialect = &dialect,
       .label_prefix = label,
       .manifest = std::move(info.manifest),
       .transfer = engine.weight_transfer,
       .request_timeout = duration_of(engine.request_timeout_s),
       .update_timeout = duration_of(engine.request_timeout_s),
       .logprob_tolerance = engine.logprob_tolerance},
      *std::move(server));
  if (!made) return made.error();
  return std::unique_ptr<rollout::Engine>(*std::move(made));
}

scheduler::MemoryDemand served_memory(const job::JobSpec& job, const PlannedModel& model) {
  scheduler::MemoryDemand demand;
  const auto published =
      static_cast<std::int64_t>(model::published_manifest(model.config).bytes_total);
  // On a CPU the server's weights are in the host's memory; its pages and libraries are its own
  // affair, as engines differ.
  if (job.rollout.engine.url.empty() && job.pools.rollout.gpus_per_actor == 0)
    add_row(demand, "the server's weights", published);
  add_row(demand, "weights that arrive", published);
  add_process(demand, &model);
  return demand;
}

}  // namespace tandem::app
