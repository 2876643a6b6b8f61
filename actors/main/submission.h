// From what a user submits, or an earlier controller remembered, to the shape of a job that can be
// given to the controller.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "actors/api/http_api.h"
#include "actors/controller/controller.h"
#include "actors/controller/durable.h"
#include "actors/exchange/exchange_core.h"
#include "actors/main/kept_prompts.h"
#include "actors/main/memory_plan.h"

namespace tandem::app {

// The shape of a job that was submitted by HTTP. Mistakes in its text, its data and the run to
// resume are found here, before a run directory exists. `resume` may name only a run in `runs`.
Result<controller::JobShape> submitted_shape(const api::SubmittedJob& submitted,
                                             const std::filesystem::path& runs, Hosts hosts,
                                             KeptPrompts& prompts, KeepPrompts keep);

// The exchange that has died with its controller, from its journal's last image and the events
// after it. None where the run did not train, where it has actors that broadcast weights, whose
// epochs are in no journal, and where the journal does not give the state whose hash it has, or is
// of another job.
std::optional<exchange::Predecessor> predecessor_of(const controller::JobShape& shape,
                                                    const std::filesystem::path& run_dir);

// The exchanges that can be followed, by job.
using Predecessors = std::map<std::string, exchange::Predecessor>;

// The jobs of the controller before this one. Each is checked again, as when it was submitted. It
// goes on with its run where that has begun; else it begins in its run directory, which is there.
// Fills `predecessors`.
controller::TakeUp jobs_to_take_up(const controller::DurableState& remembered, Hosts hosts,
                                   KeptPrompts& prompts, Predecessors& predecessors);

}  // namespace tandem::app
