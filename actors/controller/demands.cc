#include "actors/controller/demands.h"

#include <string>

#include "scheduler/fleet/memory_demand.h"

namespace tandem::controller {

namespace {

scheduler::Strategy strategy_of(const JobShape& shape, const messages::Role& role) {
  const auto chosen = shape.strategy.find(role);
  return chosen == shape.strategy.end() ? scheduler::Strategy::kPack : chosen->second;
}

}  // namespace

std::vector<scheduler::RoleDemand> demands_of(const JobShape& shape) {
  std::vector<scheduler::RoleDemand> demands;
  for (const messages::Role& role : shape.roles) {
    const std::string& key = name(role);
    const bool learner = role == messages::Role::kLearner;
    const bool program = program_of(shape, role) != nullptr;
    const std::string pool = (program ? "actors." : "pools.") + key;
    const auto memory = shape.memory.find(role);
    demands.push_back(
        {.role = key,
         .replicas = learner ? 1 : shape.replicas.at(role),
         .ranks = ranks_of(shape, role),
         .per_rank = shape.per_rank.at(role),
         .strategy = strategy_of(shape, role),
         .nccl = shape.nccl_roles.contains(role),
         .replicas_key = learner ? "" : (program ? "actors." : "") + key + ".replicas",
         .ranks_key = learner ? "learner.ranks" : "",
         .cpus_key = pool + ".cpus_per_actor",
         .gpus_key = program || holds_model(role) ? pool + ".gpus_per_actor" : "",
         .memory = memory == shape.memory.end() ? scheduler::MemoryDemand{} : memory->second});
  }
  return demands;
}

scheduler::Gang gang_of(const JobRecord& job, const ActorRecord& actor) {
  return {.actor = actor.name,
          .per_rank = job.shape.per_rank.at(actor.role),
          .ranks = ranks_of(job.shape, actor.role),
          .strategy = strategy_of(job.shape, actor.role),
          .nccl = job.shape.nccl_roles.contains(actor.role),
          .nccl_version = job.nccl_version};
}

// Rows without a paged part are fixed: settle_memory() has nothing to decide.
JobShape as_placed(JobShape shape) {
  shape.memory_options.clear();
  for (auto& [role, demand] : shape.memory) {
    demand.rows = scheduler::shown_rows(demand);
    demand.paged.reset();
  }
  return shape;
}

std::int64_t planned_pages(const JobShape& shape, const messages::Role& role) {
  const auto memory = shape.memory.find(role);
  if (memory == shape.memory.end() || !memory->second.paged) return 0;
  return memory->second.paged->pages;
}

}  // namespace tandem::controller
