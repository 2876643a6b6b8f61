// The first steps of one rank of NativeTrainer: the checks of its setup, how many bytes it takes,
// and the allocation of the large blocks that it keeps for its whole run. The functions are called
// in this order, by the thread that makes the trainer; the first two allocate nothing.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "actors/learner/learner_config.h"
#include "actors/learner/loss_pass.h"
#include "actors/learner/optimizer.h"
#include "actors/learner/sharded_update.h"
#include "actors/learner/trainer_weights.h"
#include "actors/learner/warm_start.h"
#include "actors/model/checkpoint.h"
#include "actors/model/model_config.h"
#include "runtime/base/result.h"
#include "runtime/collective/collective.h"
#include "runtime/collective/shard_exchange.h"
#include "runtime/device/arena.h"
#include "runtime/device/parallel.h"
#include "runtime/device/stream.h"

namespace tandem::learner {

struct NativeTrainerSetup {
  TrainerConfig config;
  model::Model model;                            // with its untrained weights
  std::vector<WarmStartRecord> records;          // for the warm start; the same on every rank
  std::unique_ptr<collective::Collective> gang;  // null: one rank
  // Moves gradients and weights between the ranks of `gang`, in memory of `device`, while the gang
  // moves everything else. Required for several ranks on GPUs. Null: the gang moves everything.
  std::unique_ptr<collective::ShardExchange> shards;
  BucketLimits buckets;  // the same on every rank
  device::DeviceKind device = device::DeviceKind::kCpu;
  std::unique_ptr<device::ThreadPool> threads;  // null: the calling thread alone
  std::function<void()> beat;                   // after each piece of work; may be empty
  // Called when the trainer goes on to another kind of work, with the name that a watch over hangs
  // knows it by (scheduler/fleet/hang_timeout.h). For rank 0; may be empty.
  std::function<void(const char* phase)> enter = {};
};

// kInvalid where the setup contradicts itself or the model.
Result<void> check_setup(const NativeTrainerSetup& setup);

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

// The large blocks of memory of one rank, on its device and on the host.
struct TrainerArenas {
  TrainerWeights weights;
  device::Arena gradients;
  Optimizer optimizer;
  LossPass pass;
};

// With setup.shards the optimizer's parts are this rank's shards; without them the optimizer is
// whole(). Moves setup.model.weights into the result. The error means too little memory.
Result<TrainerArenas> allocate_arenas(NativeTrainerSetup& setup);

}  // namespace tandem::learner
