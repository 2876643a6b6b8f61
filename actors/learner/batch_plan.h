// The part of a batch that one rank computes: for each mini-batch, which is one optimizer step of
// an epoch, the rank's share of the groups, packed into micro-batches.
//
//   BP-1  Mini-batches are consecutive groups of the batch, mini_batch_groups each, so every group
//         is in exactly one.
//   BP-2  Every group that learns or is observed is in exactly one rank's micro-batches. Which rank
//         that is depends on the number of ranks and on which groups these are, and on nothing
//         else, so the plan is the same in every epoch. Observed groups change no micro-batch of
//         groups that learn.
#pragma once

#include <cstdint>
#include <vector>

#include "actors/learner/learner_config.h"
#include "actors/learner/packing.h"

namespace tandem::learner {

struct MiniBatch {
  std::vector<MicroBatch> learning;  // forward and backward
  std::vector<MicroBatch> observed;  // groups without a gradient: forward alone, for the metrics
};

struct PlanFor {
  int rank = 0;
  int ranks = 1;
  device::DeviceKind device = device::DeviceKind::kCpu;
};

// The groups to compute; no group is in both.
struct PlannedGroups {
  const std::vector<bool>& learns;    // [B] as in BatchAdvantages
  const std::vector<bool>& observed;  // [B] as in ObservedGroups
};

// The error is that of pack().
Result<std::vector<MiniBatch>> plan_batch(const TrainBatch& batch, const PlannedGroups& planned,
                                          const TrainerConfig& config, const PlanFor& who);

}  // namespace tandem::learner
