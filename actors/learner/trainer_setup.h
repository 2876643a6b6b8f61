// The parts that one rank of NativeTrainer is made from, and the checks that need no allocation.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "actors/learner/learner_config.h"
#include "actors/learner/sharded_update.h"
#include "actors/learner/warm_start.h"
#include "actors/model/checkpoint.h"
#include "runtime/base/result.h"
#include "runtime/collective/collective.h"
#include "runtime/collective/shard_exchange.h"
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
};

// kInvalid where the setup contradicts itself or the model.
Result<void> check_setup(const NativeTrainerSetup& setup);

}  // namespace tandem::learner
