// The memory that every rank of a job takes of its host, known before anything starts: from the
// same functions that size what is allocated. The entry of a role lists what it takes
// (roles/role_entry.h). Pure.
//
// Host memory alone. A rank checks by itself, when it starts, whether its GPU has room
// (trainer_setup.h, engine_config_on in roles/rollout_role.cc); for a rank on a GPU the plan has
// what it keeps on the host. Not planned: the memory of reward programs, which reward.limits
// bounds, and of the controller and the agent.
//
// The ranks of a learner are all planned as rank 0, which alone publishes versions and keeps older
// ones.
#pragma once

#include <map>
#include <vector>

#include "actors/controller/controller_state.h"
#include "actors/job/job_spec.h"
#include "actors/main/roles/planned_model.h"
#include "actors/messages/roles.h"
#include "scheduler/fleet/memory_demand.h"

namespace tandem::app {

// The demand of one rank of each role, in bytes. Pages of a rollout are left open within bounds;
// the controller settles their number by the largest node (ME-2).
std::map<messages::Role, scheduler::MemoryDemand> plan_memory(const job::JobSpec& job,
                                                              const PlannedModel& model,
                                                              Hosts hosts);

// Changes to the job with which some rank takes less memory, from those that cost least to all of
// them together, each with the demand that results. Each changed job keeps the rules of
// job_rules.h. A controller that refuses the job for its memory names one that would fit.
std::vector<scheduler::MemoryOption> memory_options(const job::JobSpec& job,
                                                    const PlannedModel& model, Hosts hosts);

// Puts both into `shape`.
void add_memory_plan(const job::JobSpec& job, const PlannedModel& model, Hosts hosts,
                     controller::JobShape& shape);

}  // namespace tandem::app
