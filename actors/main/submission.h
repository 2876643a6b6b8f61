// From what a user submits, or an earlier controller remembered, to the shape of a job that can be
// given to the controller.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "actors/api/http_api.h"
#include "actors/controller/controller.h"
#include "actors/controller/durable.h"
#include "actors/exchange/exchange_core.h"
#include "actors/job/job_spec.h"
#include "actors/main/kept_prompts.h"
#include "actors/main/memory_plan.h"

namespace tandem::app {

// The shape of a job that was submitted by HTTP. Mistakes in its text, its data and the run to
// resume are found here, before a run directory exists. `resume` may name only a run in `runs`.
// `pricing`: as in add_pricing().
Result<controller::JobShape> submitted_shape(const api::SubmittedJob& submitted,
                                             const std::filesystem::path& runs, Hosts hosts,
                                             KeptPrompts& prompts, KeepPrompts keep,
                                             const std::optional<scheduler::Pricing>& pricing = {});
// A job that trains and has no prices gets those of the cluster, if that has any.
void add_pricing(const std::optional<scheduler::Pricing>& of_cluster, job::JobSpec& job);

// How the exchange of a job that trains begins where the one before has died with its controller.
struct NextExchange {
  bool follows = false;           // actors that live go on; else they are ended, and started anew
  std::int64_t earlier_rows = 0;  // controller::Earlier::rows of the job from now on
  // The one that it follows, from its journal's last image and the events after it. None where the
  // journal has no event of it: then nobody was told anything, and the actors meet the first
  // exchange.
  std::optional<exchange::Predecessor> before{};
};
// `earlier_rows`: those of attempts that were over when the job was submitted. An attempt is not
// followed, and another one begins, if its journal contradicts its own hashes, if a payload is
// missing, if its settings are those of another job, or if the journal has lost some of the earlier
// rows. One that has ended is followed to its result.
NextExchange next_exchange(const controller::JobShape& shape, const std::filesystem::path& run_dir,
                           std::int64_t earlier_rows);

// The exchanges that can be followed, by job.
using Predecessors = std::map<std::string, exchange::Predecessor>;

// The jobs of the controller before this one. Each is checked again, as when it was submitted. It
// goes on with its run where that has begun; else it begins in its run directory, which is there.
// Fills `predecessors`.
controller::TakeUp jobs_to_take_up(const controller::DurableState& remembered, Hosts hosts,
                                   KeptPrompts& prompts, Predecessors& predecessors);

}  // namespace tandem::app
