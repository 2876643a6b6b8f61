// What every rank of a job takes of its host's memory, known before anything starts: from the same
// functions that size what is allocated. Pure, but for the size of one file (planned_model()).
//
// Host memory alone. What lies in a GPU's memory is checked by the rank itself when it starts
// (trainer_memory.h, engine_config_on in rank_roles.cc); of a rank on a GPU the plan has what it
// keeps on the host. Not planned: the memory of reward programs, which reward.limits bounds, and of
// the controller and the agent.
//
// A learner's ranks are all planned as rank 0, which alone publishes versions and keeps older ones.
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

// What a rank process takes besides its rows: program, libraries, stacks, sockets, logs. Measured
// with the arithmetic job, whose model has 115 thousand parameters: 15 MiB resident for a reward,
// 31 for the learner, 53 for a rollout, of which its pages are 10 and its sequences the rest.
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
// A tokenizer.json that cannot be looked at counts as empty: whoever reads it says so.
PlannedModel planned_model(actors::ModelConfig config, const std::filesystem::path& directory);

// Whether ranks may run on other hosts than the learner's, where versions arrive in memory of their
// own before they are packed.
enum class Hosts : std::uint8_t { kOne, kSeveral };

// Of each rank of every role.
std::map<actors::Role, scheduler::MemoryDemand> plan_memory(const JobSpec& job,
                                                            const PlannedModel& model, Hosts hosts);

// Changes to the job with which some rank takes less, from those that cost the least to all of them
// together. Each keeps the job's rules (job_rules.h).
std::vector<scheduler::MemoryOption> memory_options(const JobSpec& job, const PlannedModel& model,
                                                    Hosts hosts);

// Both, for the controller.
void add_memory_plan(const JobSpec& job, const PlannedModel& model, Hosts hosts,
                     actors::JobShape& shape);

}  // namespace tandem::cli
