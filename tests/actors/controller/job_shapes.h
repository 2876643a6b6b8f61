// Shapes of jobs for tests of the controller's decisions.
#pragma once

#include <cstdint>
#include <string>

#include "actors/controller/controller_state.h"

namespace tandem::controller {

inline JobShape shape_of(double cpus, std::int32_t rollouts = 1, std::int32_t learner_ranks = 1) {
  JobShape shape{.name = "job",
                 .replicas = {{messages::Role::kRollout, rollouts}, {messages::Role::kReward, 1}},
                 .learner_ranks = learner_ranks,
                 .total_steps = 10};
  for (const messages::Role& role : messages::kTrainingRoles)
    shape.per_rank[role] = scheduler::resources({.cpus = cpus});
  return shape;
}

// Small but for the rollouts, each of which takes so much of GPUs.
inline JobShape gpu_shape_of(double gpus, std::int32_t rollouts = 1) {
  JobShape shape = shape_of(0.5, rollouts);
  shape.per_rank[messages::Role::kRollout] = scheduler::resources({.cpus = 0.5, .gpus = gpus});
  return shape;
}

// Adds a role of the user's to a shape; a job of actors alone has no other.
inline void add_program(JobShape& shape, const std::string& role, std::int32_t replicas) {
  shape.roles.push_back({role});
  shape.programs[{role}] = {.command = {"/bin/" + role}, .args_json = R"({"start": 3})"};
  shape.replicas[{role}] = replicas;
  shape.per_rank[{role}] = scheduler::resources({.cpus = 0.5});
}

inline JobShape actors_alone(std::int32_t counters) {
  JobShape shape{.name = "job", .roles = {}};
  add_program(shape, "counter", counters);
  return shape;
}

}  // namespace tandem::controller
