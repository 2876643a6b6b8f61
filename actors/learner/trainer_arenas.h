// The large blocks of memory that one rank of NativeTrainer keeps for its whole run, on its device
// and on the host. trainer_memory.h computes beforehand how much of a GPU they take.
#pragma once

#include <optional>

#include "actors/learner/loss_pass.h"
#include "actors/learner/native_trainer.h"
#include "actors/learner/optimizer.h"
#include "actors/model/weights.h"
#include "runtime/base/result.h"
#include "runtime/device/arena.h"

namespace tandem::actors {

struct TrainerArenas {
  std::optional<runtime::Arena> master;  // of a GPU: the weights that it updates
  // Of bf16: what is published, on the host; else the host's weights are.
  std::optional<runtime::Arena> rounded;
  runtime::Arena gradients;
  Optimizer optimizer;
  Weights policy;
  std::optional<runtime::Arena> reference;  // use_kl_loss: the weights at the start of RL; host
  std::optional<Weights> reference_policy;
  LossPass pass;
};

// With setup.shards the optimizer's parts are this rank's shards; without it the optimizer is
// whole(). The error is want of memory.
Result<TrainerArenas> allocate_arenas(const NativeTrainerSetup& setup);

}  // namespace tandem::actors
