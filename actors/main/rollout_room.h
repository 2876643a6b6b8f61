// How many rollouts of a job there is room for: on the nodes of the cluster that runs it, beside
// all that runs there, or on this machine with nothing else on it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "actors/job/job_spec.h"
#include "actors/runs/run_catalogue.h"
#include "runtime/base/json.h"

namespace tandem::app {

struct RolloutRoom {
  std::int64_t rollouts = 0;  // in all, those of the job that are up among them
  std::string where;          // "the cluster's nodes"
};

// No more rollouts than these are looked for.
inline constexpr std::int64_t kRoomMost = 4096;

// `nodes` and `job` are objects of the API, `keys` those of the job. A node that is cordoned or
// lost has no room. nullopt where no node is known. Pure.
std::optional<RolloutRoom> room_on_nodes(const nlohmann::json& nodes, const nlohmann::json& job,
                                         const runs::JobKeys& keys);

// By CPUs and GPUs, and by memory where the model's directory can be read. nullopt where the
// machine cannot be described.
std::optional<RolloutRoom> room_here(job::JobSpec job);

}  // namespace tandem::app
