// The engine of a rollout whose job names one with a server of its own, and what it takes of the
// host.
#pragma once

#include <memory>

#include "actors/job/job_spec.h"
#include "actors/main/roles/planned_model.h"
#include "actors/main/roles/rank_resources.h"
#include "actors/messages/rank.h"
#include "actors/model/checkpoint.h"
#include "actors/rollout/engine.h"
#include "runtime/base/result.h"
#include "scheduler/fleet/memory_demand.h"

namespace tandem::app {

// Starts or finds the server and returns when it can be driven, which may take minutes. The engine
// ends a server that was started. Errors: kInvalid for what only the user can mend, such as a
// program that is not there; others may pass.
Result<std::unique_ptr<rollout::Engine>> make_served_engine(RankResources& resources,
                                                            const messages::StartRank& start,
                                                            const job::JobSpec& job,
                                                            model::ModelInfo info);

scheduler::MemoryDemand served_memory(const job::JobSpec& job, const PlannedModel& model);

}  // namespace tandem::app
