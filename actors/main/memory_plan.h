// The memory that every rank of a job takes of its host, known before anything starts: from the
// same functions that size what is allocated. Pure, except for the size of one file
// (planned_model()).
//
// Host memory alone. A rank checks by itself, when it starts, whether its GPU has room
// (trainer_memory.h, engine_config_on in rank_roles.cc); for a rank on a GPU the plan has what it
// keeps on the host. Not planned: the memory of reward programs, which reward.limits bounds, and of
// the controller and the agent.
//
// The ranks of a learner are all planned as rank 0, which alone publishes versions and keeps older
// ones.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <vector>

#include "actors/controller/controller_state.h"
#include "actors/main/job/job_spec.h"
#include "actors/messages/roles.h"
#include "actors/model/model_config.h"
#include "scheduler/fleet/memory_demand.h"

namespace tandem::cli {

// The memory of a rank process besides its rows: program, libraries, stacks, sockets, logs.
// Measured with the arithmetic job, whose model has 115 thousand parameters: 15 MiB resident for a
// reward, 31 for the learner, 53 for a rollout, of which its pages are 10 and its sequences the
// rest.
inline constexpr std::int64_t kRankProcessBytes = std::int64_t{64} << 20;

// A tokenizer in memory, as a multiple of tokenizer.json. Measured with SmolLM2's, 2.1 MB: 18 MiB
// more resident at most than with a tokenizer of 16 tokens, while the JSON is parsed.
inline constexpr std::int64_t kTokenizerBytesPerFileByte = 10;

// For each token of a batch: the token, log-probabilities, versions, the loss's stores, and the
// payload that they came in.
inline constexpr std::int64_t kBatchBytesPerToken = 48;

struct PlannedModel {
  actors::ModelConfig config;
  std::int64_t tokenizer_bytes = 0;  // of its tokenizer.json
};
// The model of `directory` as plan_memory() needs it. A tokenizer.json that cannot be looked at
// counts as empty: the code that reads it reports the error.
PlannedModel planned_model(actors::ModelConfig config, const std::filesystem::path& directory);

// Whether ranks may run on other hosts than the learner. There a version arrives in memory of its
// own before it is packed into the engine's weights.
enum class Hosts : std::uint8_t { kOne, kSeveral };

// The demand of one rank of each role, in bytes. Pages of a rollout are left open within bounds;
// the controller settles their number by the largest node (ME-2).
std::map<actors::Role, scheduler::MemoryDemand> plan_memory(const JobSpec& job,
                                                            const PlannedModel& model, Hosts hosts);

// Changes to the job with which some rank takes less memory, from those that cost least to all of
// them together, each with the demand that results. Each changed job keeps the rules of
// job_rules.h. A controller that refuses the job for its memory names one that would fit.
std::vector<scheduler::MemoryOption> memory_options(const JobSpec& job, const PlannedModel& model,
                                                    Hosts hosts);

// Puts both into `shape`.
void add_memory_plan(const JobSpec& job, const PlannedModel& model, Hosts hosts,
                     actors::JobShape& shape);

}  // namespace tandem::cli
