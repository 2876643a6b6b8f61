// The large blocks of memory that one rank of NativeTrainer keeps for its whole run, on its device
// and on the host. trainer_memory.h computes beforehand how much of a GPU these blocks take.
#pragma once

#include "actors/learner/loss_pass.h"
#include "actors/learner/optimizer.h"
#include "actors/learner/trainer_setup.h"
#include "actors/learner/trainer_weights.h"
#include "runtime/base/result.h"
#include "runtime/device/arena.h"

namespace tandem::learner {

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
