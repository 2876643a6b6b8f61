// The model of a job as the memory plan needs it, and the rows that several roles have in their
// plans (memory_plan.h). Pure, except for the size of one file (planned_model()).
#pragma once

#include <cstdint>
#include <filesystem>

#include "actors/model/model_config.h"
#include "runtime/device/stream.h"
#include "scheduler/fleet/memory_demand.h"

namespace tandem::app {

// The memory of a rank process besides its rows: program, libraries, stacks, sockets, logs.
// Measured with the arithmetic job, whose model has 115 thousand parameters: 15 MiB resident for a
// reward, 31 for the learner, 53 for a rollout, of which its pages are 10 and its sequences the
// rest.
inline constexpr std::int64_t kRankProcessBytes = std::int64_t{64} << 20;

// A tokenizer in memory, as a multiple of tokenizer.json. Measured while the JSON is parsed, over a
// program of 6 MiB: 21 MiB for Llama 2's 1.4 MB, whose merges are lists, 140 for 8.8 MB of Unigram,
// 202 for Gemma's 13.6 MB; 18 for SmolLM2's 2.1 MB, whose merges are strings.
inline constexpr std::int64_t kTokenizerBytesPerFileByte = 17;

struct PlannedModel {
  model::ModelConfig config;
  std::int64_t tokenizer_bytes = 0;  // the size of its tokenizer.json
};
// The model of `directory` as plan_memory() needs it. A tokenizer.json that cannot be looked at
// counts as empty: the code that reads it reports the error.
PlannedModel planned_model(model::ModelConfig config, const std::filesystem::path& directory);

// Whether ranks may run on other hosts than the learner. There a version arrives in memory of its
// own before it is packed into the engine's weights.
enum class Hosts : std::uint8_t { kOne, kSeveral };

// The device of a rank of a pool with so many GPUs.
device::DeviceKind planned_device(double gpus_per_actor);
// Adds a row, unless it is of no bytes.
void add_row(scheduler::MemoryDemand& demand, const char* name, std::int64_t bytes,
             scheduler::MemoryUse use = scheduler::MemoryUse::kLasting);
// Adds the rows of the process itself, and of a tokenizer where there is a model.
void add_process(scheduler::MemoryDemand& demand, const PlannedModel* model);

}  // namespace tandem::app
