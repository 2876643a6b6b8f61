// Computes how much of a GPU's memory a learner takes, before anything is allocated there.
#pragma once

#include <cstddef>
#include <vector>

#include "actors/learner/learner_config.h"
#include "actors/model/model_config.h"
#include "runtime/base/result.h"
#include "runtime/device/stream.h"

namespace tandem::learner {

struct MemoryPart {
  const char* name;  // "gradients"
  std::size_t bytes;
};

// The arenas and workspaces that NativeTrainer allocates on the device, and the versions that its
// publisher allocates. Tables of a few numbers for each token are left out. `sharing` is the number
// of ranks that share the optimizer's work, and with it the moments.
std::vector<MemoryPart> trainer_memory(const model::ModelConfig& model, const TrainerConfig& config,
                                       device::DeviceKind device, int sharing = 1);

// The error is kOutOfMemory, with the arithmetic in its text, if the parts and kGpuReserveBytes
// together exceed `free_bytes`.
Result<void> check_trainer_memory(const std::vector<MemoryPart>& parts, std::size_t free_bytes,
                                  std::size_t total_bytes, const TrainerConfig& config);

}  // namespace tandem::learner
