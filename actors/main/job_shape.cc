#include "actors/main/job_shape.h"

#include "actors/job/load_job.h"
#include "actors/job/print_job.h"
#include "actors/job/resume.h"
#include "actors/main/roles/registry.h"
#include "actors/rank/caged_program.h"

namespace tandem::app {

using messages::Role;

namespace {

// The node's own binary starts a sandboxed program.
std::vector<std::string> launcher_of(const job::ActorSpec& spec) {
  if (spec.sandbox == sandbox::SandboxMode::kOff) return {};
  rank::CageSettings settings{.mode = spec.sandbox};
  if (spec.memory_megabytes)
    settings.memory_bytes = static_cast<std::uint64_t>(*spec.memory_megabytes) << 20;
  for (const std::filesystem::path& path : spec.readable)
    settings.readable.push_back(path.string());
  for (const auto& [name, value] : spec.env) settings.variables.push_back(name);
  return rank::cage_arguments(settings);
}

// Adds the roles that the job brings.
void add_actors(const job::ActorsSpec& specs, controller::JobShape& shape) {
  for (const auto& [name, spec] : specs) {
    const Role role{name};
    shape.roles.push_back(role);
    shape.replicas[role] = static_cast<std::int32_t>(spec.replicas);
    shape.per_rank[role] =
        scheduler::resources({.cpus = spec.cpus_per_actor,
                              .gpus = spec.gpus_per_actor,
                              .memory_bytes = spec.memory_megabytes.value_or(0) << 20});
    shape.programs[role] = {.command = spec.command.value_or(std::vector<std::string>{}),
                            .environment = spec.env,
                            .args_json = spec.args.text,
                            .launcher = launcher_of(spec)};
  }
}

void add_training(const job::JobSpec& job, controller::JobShape& shape) {
  if (const auto& traits = weights::traits_of(job.weight_broadcast.type); traits.one_gpu)
    shape.one_gpu = "weight_broadcast.type: " + std::string(traits.name);
  shape.total_steps = job.learner.total_training_steps;
  shape.staleness_bound = job.async.max_staleness;
  if (job.pools.rollout.preemptible) shape.preemptible.insert(Role::kRollout);
  if (const auto& autoscale = job.pools.rollout.autoscale)
    shape.autoscale =
        scheduler::AutoscaleConfig{.min = autoscale->min,
                                   .max = autoscale->max,
                                   .target_trainer_idle = autoscale->target_trainer_idle,
                                   .headroom = autoscale->headroom,
                                   .window_steps = autoscale->window_steps,
                                   .cooldown = std::chrono::duration_cast<Duration>(
                                       std::chrono::duration<double>(autoscale->cooldown_s))};
  for (const RoleEntry& entry : role_entries()) {
    const RoleDemands demands = entry.demands(job);
    shape.roles.push_back(entry.role);
    // The learner is one gang, which cannot be scaled.
    if (entry.role == Role::kLearner)
      shape.learner_ranks = static_cast<std::int32_t>(demands.ranks);
    else
      shape.replicas[entry.role] = static_cast<std::int32_t>(demands.replicas);
    shape.per_rank[entry.role] = demands.per_rank;
    if (demands.strategy) shape.strategy[entry.role] = *demands.strategy;
    if (demands.nccl) shape.nccl_roles.insert(entry.role);
  }
}

std::optional<runs::JobFacts> read_job_facts(const std::string& yaml,
                                             const std::filesystem::path& run_dir) {
  const auto spec = job::parse_job_of_run(yaml, run_dir);
  if (!spec) return std::nullopt;
  const bool training = trains(*spec);
  const job::TrackingSpec& told = spec->tracking;
  return runs::JobFacts{.name = spec->name,
                        .total_steps = training ? spec->learner.total_training_steps : 0,
                        .trains = training,
                        .group = told.group.value_or(""),
                        .run_name = told.run_name.value_or(""),
                        .notes = told.notes.value_or(""),
                        .tags = told.tags};
}

Result<runs::JobKeys> read_job_keys(const std::string& yaml, const std::filesystem::path& run_dir) {
  const auto spec = job::parse_job_of_run(yaml, run_dir);
  if (!spec) return spec.error();
  runs::JobKeys keys;
  for (job::PrintedKey& key : printed_keys(*spec))
    keys.emplace_back(std::move(key.path), std::move(key.value));
  return keys;
}

}  // namespace

controller::JobShape job_shape(const job::JobSpec& job) {
  controller::JobShape shape{.name = job.name,
                             .yaml = print_job(job),
                             .spec = std::make_shared<const job::JobSpec>(job),
                             .roles = {}};
  if (trains(job)) add_training(job, shape);
  add_actors(job.actors, shape);
  return shape;
}

void resume_from(const std::filesystem::path& run, controller::JobShape& shape) {
  shape.resume_dir = run.string();
  shape.resumed_step = job::newest_checkpoint(run).value_or(0);
}

runs::JobReaders job_readers() { return {read_job_facts, read_job_keys}; }

}  // namespace tandem::app
